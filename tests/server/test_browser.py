"""The whole way from signing in to a release, as each role, in a real Chromium.

Screenshots go to ``build/screenshots``. With DISCREET_SCREENSHOTS=1 the picture of the README is
made anew.
"""

import os
import re
import shutil
from pathlib import Path

import pytest

from discreet.server.demo import prepare
from tests.server.running import Running, free_port

CHROMIUM = Path("/usr/bin/chromium")
ROOT = Path(__file__).parents[2]
SHOTS = ROOT / "build" / "screenshots"
SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason="no Chromium is installed (Debian: apt-get install chromium)"
    ),
]


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """The demo, served."""
    folder = tmp_path_factory.mktemp("demo")
    made = prepare(folder, address=f"127.0.0.1:{free_port()}")
    found = Running(made.config)
    found.tokens = made.tokens
    try:
        found.fork()
        yield found
    finally:
        found.kill()


@pytest.fixture(scope="module")
def chromium(house):
    from playwright.sync_api import sync_playwright

    SHOTS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        # As root there is no sandbox; nothing but our own pages is opened.
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(house, chromium, request):
    """Open a page, signed in; whatever the console complains about fails the test."""
    complaints, contexts = [], []

    def heard(message):
        # A page that is refused is one of 401, which is what some tests are about.
        if message.type == "error" and "status of 401" not in message.text:
            complaints.append(message.text)

    def opened(role=None, *, size="desktop", scheme="light"):
        context = chromium.new_context(
            viewport=SIZES[size], color_scheme=scheme, base_url=house.url, locale="en-GB"
        )
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", heard)
        page.on("pageerror", lambda e: complaints.append(str(e)))
        page.on(
            "request",
            lambda r: None if r.url.startswith(house.url) else complaints.append(r.url),
        )
        if role is not None:
            page.goto("/login")
            page.get_by_label("Your token").fill(house.tokens[role])
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url(lambda url: "/login" not in url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def shot(page, name):
    page.screenshot(path=SHOTS / f"{name}.png", full_page=True)


def fits(page):
    """Nothing is wider than the screen."""
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")


def test_an_analyst_plans_and_releases(visit, house):
    page = visit("analyst")
    before = len(house.charges("health study"))
    page.get_by_role("link", name="Health care in six places").first.click()
    shot(page, "table")
    page.get_by_role("link", name=re.compile("Plan")).first.click()
    page.get_by_label("Ask for").select_option("mean")
    page.get_by_label("of", exact=True).select_option("visits")
    page.get_by_role("checkbox", name="plan").check()
    plan = page.get_by_label("The plan")
    first = plan.inner_text()
    # The slider moves the error at once, and nothing is spent by it.
    page.locator("#amount").fill("0.4")
    page.wait_for_function("t => document.querySelector('#planned').innerText !== t", arg=first)
    shot(page, "plan")
    if os.environ.get("DISCREET_SCREENSHOTS") == "1":
        (ROOT / "docs" / "img").mkdir(exist_ok=True)
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=ROOT / "docs" / "img" / "dashboard.png")
    assert len(house.charges("health study")) == before
    page.get_by_role("button", name="Continue to release").click()
    page.wait_for_url("**/confirm")
    shot(page, "confirm")
    page.get_by_role("button", name=re.compile("^Spend")).click()
    page.wait_for_url("**/releases/*")
    page.get_by_text("What is promised").wait_for()
    shot(page, "release")
    assert len(house.charges("health study")) == before + 1
    # The answer is there after a reload, and costs nothing more.
    page.reload()
    page.get_by_text("What is promised").wait_for()
    for name in ("JSON", "CSV", "HTML"):
        with page.expect_download() as saved:
            page.get_by_role("link", name=re.compile(name)).first.click()
        assert Path(saved.value.path()).stat().st_size > 100
    assert len(house.charges("health study")) == before + 1


def test_pressing_twice_is_one_release(visit, house):
    page = visit("analyst")
    page.goto("/tables/health/plan")
    page.locator("#amount").fill("0.05")
    page.get_by_role("button", name="Continue to release").click()
    page.wait_for_url("**/confirm")
    before = len(house.charges("health study"))
    # The form, sent three times at once by a page that has gone mad.
    found = page.evaluate(
        """async () => {
            const form = document.querySelector('form[action$="/release"]');
            const send = () => fetch(form.action, {
                method: "POST", body: new URLSearchParams(new FormData(form))});
            return (await Promise.all([send(), send(), send()])).map(x => x.url);
        }"""
    )
    assert len(set(found)) == 1
    page.get_by_role("button", name=re.compile("^Spend")).click()
    page.get_by_text("What is promised").wait_for()
    assert page.url == found[0]
    assert len(house.charges("health study")) == before + 1


def test_an_owner_sees_everything_and_adds_somebody(visit, house):
    page = visit("owner")
    for path in ("/tables", "/releases", "/ledger", "/audit", "/leakage", "/personal", "/people"):
        assert page.goto(path).status == 200, path
        page.get_by_role("heading", level=1).wait_for()
        shot(page, f"owner{path.replace('/', '-')}")
    page.get_by_label("Name").fill("nora")
    page.get_by_role("button", name="Make a token").click()
    token = page.locator("code#token").inner_text()
    assert house.ask("GET", "/api/v1/me", token=token).json["role"] == "analyst"
    page.goto("/people")
    assert token not in page.content()
    page.get_by_text("Revoke nora").click()
    page.get_by_role("button", name="End all tokens of nora").click()
    page.get_by_text("revoked").first.wait_for()
    assert house.ask("GET", "/api/v1/me", token=token).status == 401


def test_an_auditor_reads_ledger_and_audits_and_nothing_else(visit):
    page = visit("auditor")
    for path in ("/ledger", "/audit"):
        assert page.goto(path).status == 200
        shot(page, f"auditor{path.replace('/', '-')}")
    words = page.get_by_role("navigation", name="Main").inner_text()
    assert "People" not in words
    assert "Tables" not in words


def test_who_may_not_come_in(visit, house):
    page = visit()
    page.goto("/people")
    assert "People" not in page.content()
    page.goto("/login")
    page.get_by_label("Your token").fill("dsc_wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()
    shot(page, "login")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_page_fits_in_light_and_dark(visit, size, scheme):
    page = visit("owner", size=size, scheme=scheme)
    for path in ("/tables", "/tables/health", "/tables/health/plan", "/ledger", "/people"):
        page.goto(path)
        shot(page, f"{size}-{scheme}{path.replace('/', '-')}")
        assert fits(page), (path, size)


def test_without_a_mouse(visit):
    """The first key leads to the content; every field has a name."""
    page = visit("analyst")
    page.goto("/tables/health/plan")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('input:not([type=hidden]), select, textarea')]
            .filter(x => !x.labels.length && !x.getAttribute('aria-label')).map(x => x.name)"""
    )
    assert nameless == []
    assert page.locator("[aria-live]").count() > 0


def test_the_browser_is_there():
    """Where tests of the browser run at all, they run with a real one."""
    assert shutil.which("chromium") is not None
