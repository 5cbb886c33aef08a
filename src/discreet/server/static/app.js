"use strict";
/* A slider for a number that spans orders of magnitude, and the way to the door when a session
   ends. Everything else on the pages works without this file. */
(() => {
  const twin = (slide) => document.getElementById(slide.dataset.slides);
  const ends = (slide) => [Math.log(slide.dataset.low), Math.log(slide.dataset.high)];

  function toNumber(slide) {
    const [low, high] = ends(slide);
    const value = Math.exp(low + ((high - low) * slide.value) / slide.max);
    return String(Number(value.toPrecision(2)));
  }

  function toPlace(slide) {
    const [low, high] = ends(slide);
    const value = Number(twin(slide).value);
    if (value > 0) {
      slide.value = Math.round((slide.max * (Math.log(value) - low)) / (high - low));
    }
    slide.setAttribute("aria-valuetext", twin(slide).value);
  }

  function begin(root) {
    for (const slide of root.querySelectorAll("[data-slides]")) {
      slide.closest("[hidden]")?.removeAttribute("hidden");
      toPlace(slide);
    }
  }

  // In the capture phase: the number is in place before the form is sent.
  document.addEventListener(
    "input",
    (event) => {
      const one = event.target;
      if (one.matches("[data-slides]")) {
        twin(one).value = toNumber(one);
        one.setAttribute("aria-valuetext", twin(one).value);
      } else if (one.id) {
        const slide = document.querySelector(`[data-slides="${CSS.escape(one.id)}"]`);
        if (slide) toPlace(slide);
      }
    },
    true,
  );

  // The session has ended while the page was open.
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401) location.assign("/login");
  });

  document.addEventListener("DOMContentLoaded", () => {
    begin(document);
    const here = document.querySelector("nav [aria-current]");
    here?.scrollIntoView({ block: "nearest", inline: "center" });
  });
  document.addEventListener("htmx:afterSwap", () => begin(document));
})();
