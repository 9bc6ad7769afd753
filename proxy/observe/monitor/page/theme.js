// Loaded before anything is drawn, so that a chosen theme never flashes in the other one's colours.
"use strict";

(() => {
  const KEY = "model-proxy-theme";
  const CHOICES = ["auto", "light", "dark"];
  const root = document.documentElement;

  // A browser may forbid storage; then the choice lasts as long as the page.
  function stored() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  }

  function store(choice) {
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // It is kept in the page.
    }
  }

  function use(choice) {
    root.dataset.theme = CHOICES.includes(choice) ? choice : "auto";
  }

  function label(button) {
    button.querySelector("[data-label]").textContent = root.dataset.theme;
    button.setAttribute("aria-label", `Theme: ${root.dataset.theme}. Change it`);
  }

  use(stored());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    label(button);
    button.addEventListener("click", () => {
      use(CHOICES[(CHOICES.indexOf(root.dataset.theme) + 1) % CHOICES.length]);
      store(root.dataset.theme);
      label(button);
    });
  });
})();
