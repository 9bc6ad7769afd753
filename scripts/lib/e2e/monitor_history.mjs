// The history in the monitor's page. `tools` is what monitor_page.mjs shares: the proxy, the browser, and `expect`.

const HISTORY = "#history";
const PATH = "/monitor/history";
const RANGES = { today: "Today", week: "7 days", month: "30 days", quarter: "90 days" };
// An answer of a time without requests.
const NONE = { version: 1, kept_since: 1.7e9, edges: [0, 1], whole: { requests: 0 }, periods: [], models: [], windows: [] };
// A day without an hour, and one with an hour more.
const SUMMER = { "2026-03-29T12:00:00+02:00": 23, "2026-10-25T12:00:00+01:00": 25, "2026-06-01T12:00:00+02:00": 24 };

export function historyChecks(tools) {
  const { url, ask, opened, expect, textOf, focused, withoutFaults, LIMIT_MS } = tools;
  const address = `${url}/monitor${HISTORY}`;

  // The page with the history, and what the proxy answered to it: `told()` is the newest.
  async function past(browser, options = {}, range = "month") {
    const seen = await opened(browser, options);
    const answers = [];
    seen.page.on("response", (answer) => answer.url().includes(PATH) && answers.push(answer));
    await seen.page.evaluate(() => location.assign("#history"));
    await drawn(seen.page);
    if (range) await choose(seen.page, range);
    return { ...seen, answers, told: async () => (await answers.at(-1).json()) };
  }

  async function drawn(page) {
    await page.waitForFunction(() => document.querySelector("#history .history-panels")?.hidden === false && !document.querySelector("#history").ariaBusy, null, { timeout: LIMIT_MS });
  }

  async function choose(page, range) {
    await page.locator(`#history input[value=${range}]`).check();
    await drawn(page);
  }

  const figure = (page, name) => page.locator(".figures > div").filter({ has: page.locator("dt").filter({ hasText: new RegExp(`^${name}$`) }) }).locator(".figure").innerText();
  const format = (page, name, value) => page.evaluate(async ([from, called, given]) => (await import(from))[called](given), [`${url}/monitor/page/format.js`, name, value]);
  const bars = (page, selector) => page.locator(selector).evaluateAll((paths) => paths.reduce((sum, path) => sum + (path.getAttribute("d").match(/M/g) ?? []).length, 0));

  return {
    // Edges of the reader's own days, whatever becomes of the clock.
    async days(browser) {
      const { page, context } = await opened(browser, { timezoneId: "Europe/Berlin" });
      const hours = await page.evaluate(async ([from, days]) => {
        const { edgesOf } = await import(from);
        return days.map((day) => edgesOf("today", Date.parse(day) / 1000).length - 1);
      }, [`${url}/monitor/page/periods.js`, Object.keys(SUMMER)]);
      expect(String(hours) === String(Object.values(SUMMER)), "a day of summer time has its hours", hours);
      const midnights = await page.evaluate(async (from) => {
        const { edgesOf, periodName } = await import(from);
        const edges = edgesOf("week", Date.parse("2026-10-27T12:00:00+01:00") / 1000);
        return [...edges.map((each) => new Date(each * 1000).getHours()), periodName("week", edges, 4)];
      }, `${url}/monitor/page/periods.js`);
      const twice = await page.evaluate(async (from) => {
        const { edgesOf, periodName } = await import(from);
        const edges = edgesOf("today", Date.parse("2026-10-25T12:00:00+01:00") / 1000);
        return [1, 2, 3, 4].map((at) => periodName("today", edges, at));
      }, `${url}/monitor/page/periods.js`);
      expect(String(twice) === "01:00–02:00,02:00–02:00 (again),02:00 (again)–03:00,03:00–04:00", "an hour that comes twice is told apart", twice);
      expect(String(midnights) === "0,0,0,0,0,0,0,0,Sun 25 Oct", "and days begin at midnight", midnights);
      await context.close();
    },

    // What is chosen is seen where the system chooses the colours.
    async past_forced_colours(browser) {
      const { page, context } = await past(browser, { forcedColors: "active" });
      const ground = (selector) => page.locator(selector).first().evaluate((node) => getComputedStyle(node).backgroundColor);
      for (const box of [".ranges", ".views"]) {
        const colours = [await ground(`${box} :is(:checked + span, [aria-current])`), await ground(box)];
        expect(colours[0] !== colours[1], `what is chosen of ${box} has another colour`, colours);
      }
      const sides = await page.locator(".usage-panel summary").first().evaluate((node) => ["Top", "Left"].map((side) => getComputedStyle(node, "::before")[`border${side}Color`]));
      expect(sides[0] === "rgba(0, 0, 0, 0)" && sides[1] !== sides[0], "the triangle of a table is one", sides);
      await context.close();
    },

    // Names that are equal once they are cleaned, a lone request that failed, one model, and one more than have a row.
    async past_rows(browser) {
      const { page, context, told } = await past(browser, {}, null);
      const answer = await told();
      const label = (selector) => page.locator(selector).first().getAttribute("aria-label");
      const seen = async (change) => {
        await page.route(`**${PATH}*`, (route) => route.fulfill({ json: { ...answer, ...change } }), { times: 1 });
        await choose(page, (await page.locator("#history input:checked").inputValue()) === "week" ? "month" : "week");
      };
      const model = (name, more = {}) => ({ ...answer.models[0], provider: "p1", model: name, ...more });
      await seen({ models: ["a\u200bb", "a b", "a\nb"].map((name) => model(name)), windows: ["5\u200bh", "5 h"].map((window) => ({ ...answer.windows[0], window })) });
      const rows = await Promise.all([".usage-panel:nth-last-child(2) tbody tr", ".stack-legend li", ".past-windows li"].map((each) => page.locator(each).count()));
      expect(String(rows) === "3,3,2", "names that look alike have rows of their own", rows);
      await seen({ models: [model("gpt-5.5")] });
      expect(/^Tokens: [\d.]+\w by p1 gpt-5.5$/.test(await label(".wide-plot .frame")), "one model needs no sum of its own", await label(".wide-plot .frame"));
      await seen({ models: [model("gpt-5.5"), model("", { provider: "", others: 1 })] });
      expect((await textOf(page, ".usage-panel:nth-last-child(2) tbody tr:last-child th")) === "1 other model", "one is no plural", await textOf(page, ".usage-panel:nth-last-child(2)"));
      await seen({ models: [model("gpt-9", { tokens: answer.models[0].tokens.map(() => 0) })] });
      expect((await label(".wide-plot .frame")) === "Tokens: none were reported" && (await textOf(page, ".wide-plot .frame")) === "Nothing was reported", "no axis of nothing", await textOf(page, ".wide-plot .frame"));
      await context.close();
    },

    // The page shows what the route says, of a history that was there, and of requests of just now.
    async past(browser) {
      await Promise.all([ask("hello", "session-one"), ask("hello", "session-two")]);
      const { page, faults, told, context } = await past(browser);
      const { whole, models, periods, windows } = await told();
      expect(whole.requests > 1000 && models.length === 21 && models.at(-1).others === models.length - 18, "a history of some weeks, and 23 models", [whole, models.length, models.at(-1).others]);
      const figures = { Requests: ["whole", whole.requests], Failed: ["whole", whole.failed], Input: ["tokens", whole.input], Output: ["tokens", whole.output], "From the cache": ["share", whole.cached_share], "First text": ["milliseconds", whole.first_p50] };
      for (const [name, [called, value]] of Object.entries(figures)) {
        const [shown, wanted] = [await figure(page, name), await format(page, called, value)];
        expect(shown === wanted, `${name} as the route says`, [shown, wanted]);
      }
      await sameTables(page, models, periods);
      expect((await bars(page, ".stack-part")) === 30 * 6, "a part of a bar for each day and colour", await bars(page, ".stack-part"));
      expect((await page.locator(".stack-legend li").last().innerText()).startsWith("18 other models"), "models without a colour are one", await textOf(page, ".stack-legend"));
      await sameWindows(page, windows);
      await onlyKept(page);
      await hostileNames(page, faults);
      await context.close();
    },

    async past_keys(browser) {
      const { page, context, told, answers } = await past(browser, {}, "week");
      expect(!(await page.locator("#main").isVisible()) && !(await page.locator("#filter").isVisible()), "the history alone is seen", null);
      await page.locator("#history input:checked").focus();
      await page.keyboard.press("ArrowRight");
      await page.waitForFunction(() => document.querySelector(".usage-panel:last-child summary span").textContent === "30", null, { timeout: LIMIT_MS });
      expect((await told()).periods.length === 30, "an arrow key takes the next range", await told());
      const voice = page.locator("#history > [role=status]");
      const sum = await format(page, "whole", (await told()).whole.requests);
      expect(new RegExp(`^30 days: ${sum} requests, as of \\d\\d:\\d\\d$`).test(await voice.innerText()), "and a screen reader is told what it brought", await voice.innerText());
      const legend = () => page.locator(".stack-legend .number").allInnerTexts();
      const sums = await legend();
      await page.locator(".wide-plot .frame").focus();
      await page.keyboard.press("End");
      const last = await textOf(page, "#history .readout");
      expect((await legend()).every((each, at) => each !== sums[at]), "the legend has the numbers of the place", [sums, await legend()]);
      await page.keyboard.press("ArrowLeft");
      expect((await textOf(page, "#history .readout")) !== last && (await page.locator(".wide-plot .cursor").isVisible()), "arrow keys walk along a picture", last);
      const spoken = await page.locator(".wide-plot [role=status]").innerText();
      expect(/^\w+ \d+ \w+ .*tokens, p\d \S+ [\d.]+/.test(spoken), "and a screen reader is told, model by model", spoken);
      await page.keyboard.press("h");
      await page.locator("#main").waitFor({ state: "visible", timeout: LIMIT_MS });
      expect((await page.locator("[aria-current=page]").innerText()) === "Now", "h goes back to now", page.url());
      await page.keyboard.press("h");
      await drawn(page);
      const asked = answers.length;
      await page.reload();
      await drawn(page);
      expect((await page.locator("#history input:checked").inputValue()) === "month" && answers.length > asked, "a reload keeps view and range", page.url());
      expect((await page.evaluate(() => scrollY)) === 0, "and begins at the top", null);
      await page.locator("#skip").focus();
      await page.keyboard.press("Enter");
      expect(await focused(page, HISTORY), "the first link skips to the history", null);
      await context.close();
    },

    // What goes wrong is told, and tried again; an answer that is late is not shown.
    async past_faults(browser) {
      const { page, context, answers } = await past(browser, {}, "week");
      const first = await figure(page, "Requests");
      await page.route(`**${PATH}*`, (route) => route.fulfill({ status: 503, json: { error: { message: "the history cannot be read: it is damaged" } } }), { times: 1 });
      // A range whose answer fails is given up at once: `check` would not always see it chosen.
      await page.locator("#history input[value=today]").click();
      await page.locator(".history-banner").waitFor({ state: "visible", timeout: LIMIT_MS });
      expect((await textOf(page, ".history-banner")).startsWith("The history cannot be read: it is damaged."), "a failure is told", await textOf(page, ".history-banner"));
      expect((await page.locator("#history input:checked").inputValue()) === "week" && (await figure(page, "Requests")) === first, "what was known stays, under its own name", await textOf(page, HISTORY));
      expect((await textOf(page, "#history > [role=status]")) === "Still 7 days", "which a screen reader is told", await textOf(page, "#history > [role=status]"));
      await page.locator(".history-banner button").click();
      await drawn(page);
      expect(!(await page.locator(".history-banner").isVisible()), "until it is over", null);
      await page.route(`**${PATH}*`, (route) => route.fulfill({ json: NONE }), { times: 1 });
      await page.locator("#history input[value=today]").check();
      await page.locator("#history .empty").filter({ hasText: "No request ended" }).waitFor({ timeout: LIMIT_MS });
      await page.route(`**${PATH}*`, (route) => route.fulfill({ status: 503, json: { error: { message: "it is damaged" } } }), { times: 1 });
      await page.locator("#history input[value=month]").click();
      await page.locator(".history-banner").waitFor({ state: "visible", timeout: LIMIT_MS });
      expect(!(await page.locator("#history > section").isVisible()) && !(await page.locator(".history-panels").isVisible()), "where nothing was known, the fault alone is seen", await textOf(page, HISTORY));
      await choose(page, "week");
      let release;
      const released = new Promise((go) => (release = go));
      await page.route(`**${PATH}*`, async (route) => { await released; await route.continue().catch(() => {}); }, { times: 1 });
      await page.locator("#history input[value=quarter]").check();
      expect((await textOf(page, ".history-head > p")) === "Reading 90 days… Shown: 7 days", "what is awaited is told, and what is seen", await textOf(page, ".history-head"));
      await choose(page, "week");
      release();
      await page.waitForTimeout(1000);
      expect((await figure(page, "Requests")) === first, "a late answer is dropped", await figure(page, "Requests"));
      const asked = answers.length;
      await hide(page, true);
      await hide(page, false);
      await page.waitForFunction(() => !document.querySelector("#history").ariaBusy);
      expect(answers.length > asked, "it asks anew when it is looked at again", answers.length);
      await context.close();
    },

    async past_off(browser) {
      const { page, context } = await opened(browser, {}, address);
      await page.locator("#history .empty").filter({ hasText: "PROXY_HISTORY=1" }).waitFor({ timeout: LIMIT_MS });
      expect(!(await page.locator(".history-banner").isVisible()), "where none is kept, it is said how to turn it on", await textOf(page, HISTORY));
      await context.close();
    },

    async past_axe(browser) {
      for (const theme of ["light", "dark"]) {
        const { page, context } = await past(browser, { colorScheme: theme });
        await page.locator(".usage-panel summary").last().click();
        for (const width of [360, 800, 1400]) {
          await page.setViewportSize({ width, height: 900 });
          await withoutFaults(page, `the history, ${theme}, ${width} wide`);
        }
        for (const range of Object.keys(RANGES)) await choose(page, range);
        await withoutFaults(page, `the history, ${theme}, 90 days`);
        await context.close();
      }
    },
  };

  async function sameTables(page, models, periods) {
    const rows = page.locator(".usage-panel").first().locator("tbody tr");
    expect((await rows.count()) === models.length, "a row for each model", await rows.count());
    for (const index of [0, 1, models.length - 1]) {
      const { whole: sum, model, others } = models[index];
      const cells = await rows.nth(index).locator("td").allInnerTexts();
      const wanted = [await format(page, "whole", sum.requests), await format(page, "tokens", sum.input), await format(page, "share", sum.cached_share)];
      expect([cells[0], cells[2], cells[3]].join() === wanted.join(), `the numbers of ${others ? "all others" : model.slice(0, 20)}`, [cells, wanted]);
    }
    await page.locator(".usage-panel summary").last().click();
    const days = page.locator(".usage-panel").last().locator("tbody tr");
    const newest = periods.findLast((each) => each.requests > 0);
    expect((await days.count()) === periods.filter((each) => each.requests > 0).length, "a row for each day with requests", await days.count());
    expect((await days.first().locator("td").first().innerText()) === String(newest.requests), "the newest first", newest);
  }

  async function sameWindows(page, windows) {
    const words = { "p1/old 5 hours": "spent in about", "p2/work week": "lasts until its reset at this pace", "p3/old month": "used up", "p4/old Rolling": "nothing reported since its reset", "p5/old month": "nothing used in the last 3 hours", "p5/old day": "no pace is known yet" };
    for (const [name, pace] of Object.entries(words)) {
      const shown = await page.locator(".past-windows li").filter({ has: page.getByRole("img", { name: `${name}:` }) }).innerText();
      expect(shown.includes(pace), `what is known of ${name}`, shown);
    }
    expect((await page.locator(".past-windows li").count()) === windows.length, "a picture for each window", windows.length);
  }

  // A lone sample is a dot, and time of which nothing is kept is shaded.
  async function onlyKept(page) {
    const dots = page.locator(".past-windows li").filter({ has: page.getByRole("img", { name: "p5/old day:" }) }).locator(".dots");
    const [path, wide] = await dots.evaluate((node) => [node.getAttribute("d"), getComputedStyle(node).strokeWidth]);
    expect(path.startsWith("M") && Number.parseFloat(wide) > 3, "a lone sample is a dot", [path, wide]);
    const shade = () => page.locator(".wide-plot .unkept").getAttribute("width").then(Number);
    expect((await shade()) === 0, "30 days are kept", await shade());
    await choose(page, "quarter");
    expect((await shade()) > 300 && (await shade()) < 400, "of 90 days some are not", await shade());
    await page.locator(".wide-plot .frame").focus();
    await page.keyboard.press("Home");
    const spoken = await page.locator(".wide-plot [role=status]").innerText();
    expect(spoken.endsWith("nothing is kept"), "and a screen reader is told so", spoken);
  }

  async function hostileNames(page, faults) {
    const title = await page.locator(".usage .model").filter({ hasText: "long-name" }).first().getAttribute("title");
    expect(title.length > 200, "a long name is cut, and whole in its title", title);
    expect((await page.locator("img").count()) === 1, "a model's name makes no element", await page.locator("img").count());
    expect(faults.length === 0, "no fault in the console", faults);
  }

  // As if the tab were hidden, and seen again.
  async function hide(page, hidden) {
    await page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  }
}
