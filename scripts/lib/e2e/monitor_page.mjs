// The monitor's page in a real Chromium. A line for each check that holds; the first that does not ends the program.
//
// node program.mjs <url> <checks> [key]     checks: names of CHECKS below, with commas

import { createServer, request as forward } from "node:http";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createRequire } from "node:module";

// Of the functions service whose libraries the package brings; it looks for both names when it is loaded.
process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs20.x";
process.env.AWS_LAMBDA_JS_RUNTIME = "nodejs20.x";
const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
// The package unpacks the browser into the folder of temporary files, where another user may have put one.
process.env.TMPDIR = join(dirname(require.resolve("axe-core/axe.min.js")), "..", "..", "unpacked");
mkdirSync(process.env.TMPDIR, { recursive: true });
// The package's own list of folders names one that is not ours, and a browser without any font dies of a rare character.
process.env.FONTCONFIG_FILE = join(process.env.TMPDIR, "fonts.conf");
writeFileSync(
  process.env.FONTCONFIG_FILE,
  `<?xml version="1.0"?><fontconfig><dir>${process.env.TMPDIR}/fonts</dir>
  <cachedir>${process.env.TMPDIR}/fonts-cache</cachedir></fontconfig>`,
);
const { historyChecks } = await import("./monitor_history.mjs");
const { default: packed } = await import("@sparticuz/chromium");
const { chromium } = await import("playwright-core");

const [url, wanted, key] = process.argv.slice(2);
const LIMIT_MS = 10_000;
// A name that a hostile page has had pointed at this machine.
const REBOUND = "rebound.example";
const PREFIX = "/tools/ai";
const OPENER = ".sessions .opener";

function expect(condition, words, seen) {
  if (!condition) throw new Error(`${words}; seen: ${JSON.stringify(seen)}`);
  console.log(`ok ${words}`);
}

// ---- what the proxy is asked

const auth = key ? { "x-api-key": key } : {};

async function ask(prompt, session, more = {}) {
  const body = { model: "gpt-5.5", max_tokens: 500, messages: [{ role: "user", content: prompt }], ...more };
  const headers = { "content-type": "application/json", "x-claude-code-session-id": session, ...auth };
  const answer = await fetch(`${url}/v1/messages`, { method: "POST", headers, body: JSON.stringify(body) });
  return answer.text();
}

async function snapshot() {
  const answer = await fetch(`${url}/monitor`, { headers: { accept: "application/json", ...auth } });
  return (await answer.json()).snapshot;
}

// ---- the browser

async function opened(browser, options = {}, address = `${url}/monitor`) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  await page.goto(address);
  await connected(page, "live");
  return { page, faults, context };
}

// The page that most checks look at.
let shared = null;

async function common(browser) {
  shared ??= await opened(browser);
  return shared;
}

async function connected(page, kind) {
  await page.waitForFunction((wanted) => document.body.dataset.connection === wanted, kind, { timeout: LIMIT_MS });
}

const textOf = (page, selector) => page.locator(selector).first().innerText();

async function shows(page, selector, words) {
  await page.locator(selector).filter({ hasText: words }).first().waitFor({ timeout: LIMIT_MS });
}

// How high the bars of a picture are, all together.
const reach = (page, selector) =>
  page.locator(selector).evaluate((path) => [...path.getAttribute("d").matchAll(/v-([\d.]+)/g)].reduce((sum, [, each]) => sum + Number(each), 0));

const focused = (page, selector) => page.evaluate((wanted) => document.activeElement.matches(wanted), selector);

// ---- checks, in the order in which they are asked for

const CHECKS = {
  // What is there before the first request tells how to make one.
  async empty(browser) {
    const { page, faults } = await common(browser);
    expect((await textOf(page, "#sessions")).includes(`ANTHROPIC_BASE_URL=${url} `), "an empty list says how to begin", await textOf(page, "#sessions"));
    expect((await textOf(page, "#traffic-readout")) === "last 10 minutes", "no hour that the proxy has not lived", await textOf(page, "#traffic-readout"));
    expect(!(await page.locator("#sandbox").isVisible()), "no sandbox where none was asked for", null);
    expect((await page.title()) === "model-proxy", "a quiet title", await page.title());
    expect(faults.length === 0, "no fault in the console of an empty page", faults);
  },

  async numbers(browser) {
    await Promise.all([ask("hello", "session-one"), ask("stream 30 words", "session-two")]);
    await ask("hello again", "session-one");
    await ask("hello", "session-one", { model: "<img src=x onerror=alert(1)>" });
    const { page, faults } = await common(browser);
    await shows(page, "#events", "<img src=x");
    const told = await snapshot();
    expect(told.sessions.length === 2, "two sessions are told", told.sessions);
    expect((await textOf(page, "#fact-sessions")) === "2", "two sessions are shown", await textOf(page, "#fact-sessions"));
    for (const session of told.sessions) await sameNumbers(page, session);
    expect((await textOf(page, "#recent-count")) === `${told.recent.length}, 1 failed`, "all recent requests, and the failed one", await textOf(page, "#recent-count"));
    expect((await page.locator(".recent tbody tr").count()) === told.recent.length, "a row for each", told.recent.length);
    expect((await page.locator("img").count()) === 1, "a model's name makes no element", await page.content());
    const [good, bad] = [await reach(page, "#traffic .good"), await reach(page, "#traffic .bad")];
    expect(bad > 0 && Math.abs(good / bad - told.recent.length) < 0.1, "failures have the scale of requests", [good, bad]);
    expect(faults.length === 0, "no violation of the policy", faults);
  },

  // By the rules of `words.py`, whose examples these are.
  async formats(browser) {
    const { page } = await common(browser);
    const got = await page.evaluate(async (address) => {
      const { tokens, duration, took, age, milliseconds, percent, rate } = await import(address);
      const counts = { tokens: 100, seconds: 8, bytes: 3072, chunks: 1 };
      return [
        ...[999, 1234, 125_600, 3_400_000].map(tokens),
        ...[7.9, 125, 3780, 400_000].map(duration),
        ...[0.42, 9.96, 125].map(took),
        ...[1.9, 59, 7300].map(age),
        ...[3.14, 41.4, 1440].map(milliseconds),
        ...[12.5, 0.4].map(percent),
        rate(counts),
        rate({ ...counts, tokens: 0 }),
      ].join(" | ");
    }, `${url}/monitor/page/format.js`);
    const wanted = "999 | 1.2k | 126k | 3.4M | 7s | 2m05s | 1h03m | 4d15h | 0.4s | 9s | 2m05s | now | 59s ago | 2h ago | 3.1 ms | 41 ms | 1.4s | 13% | 0% | 12.5 tok/s | 384 B/s";
    expect(got === wanted, "numbers and times as on a terminal", got);
  },

  // Ids that begin alike, as those of one minute do.
  async alike(browser) {
    const ids = ["019a1b2c-3d4e-7abc-8def-0123456789ab", "019a1b2c-3d4f-7abc-8def-0123456789ab"];
    for (const id of ids) await ask("hello", id);
    const { page } = await common(browser);
    for (const id of ids) await shows(page, OPENER, id);
    expect(true, "sessions that look alike are told by their whole ids", null);
  },

  async live(browser) {
    const { page } = await common(browser);
    const before = (await snapshot()).recent.length;
    const answer = ask("stream 60 words slowly", "session-live", { stream: true });
    await shows(page, ".active tbody tr", "session-live");
    await shows(page, ".active .status", "streaming");
    expect((await page.title()) === "(1) model-proxy", "the title counts what runs", await page.title());
    const first = await textOf(page, ".active td.time");
    await page.waitForFunction((old) => document.querySelector(".active td.time")?.innerText !== old, first, { timeout: LIMIT_MS });
    await page.locator(".active .opener").first().click();
    await answer;
    await page.waitForFunction(() => document.querySelectorAll(".active tbody tr").length === 0, null, { timeout: LIMIT_MS });
    await shows(page, "#details .status", "completed");
    expect((await textOf(page, "#details-title")).startsWith("session-live"), "open details stay with their request", await textOf(page, "#details"));
    expect((await textOf(page, ".timing-legend")).includes("first token"), "and tell where its time went", await textOf(page, "#details"));
    expect((await snapshot()).recent.length === before + 1, "one more is over", before);
  },

  async keys(browser) {
    const { page } = await common(browser);
    await page.keyboard.press("/");
    expect(await focused(page, "#filter"), "a slash goes to the filter", null);
    await page.keyboard.type("session-two");
    await page.waitForFunction(() => document.querySelectorAll(".sessions tbody tr").length === 1, null, { timeout: LIMIT_MS });
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelectorAll(".sessions tbody tr").length > 1, null, { timeout: LIMIT_MS });
    expect(!(await focused(page, "#filter")), "Escape gives the keys back to the page", null);
    await page.locator(OPENER).first().focus();
    await page.keyboard.press("ArrowDown");
    const name = await page.evaluate(() => document.activeElement.innerText);
    await page.keyboard.press("Enter");
    expect(await focused(page, "#details"), "Enter goes to the details", null);
    expect((await textOf(page, "#details-title")) === name, "of the row", name);
    await page.keyboard.press("Escape");
    expect(await focused(page, OPENER), "and Escape back to the row", null);
    const count = await page.locator("main [tabindex='0']").count();
    expect(count <= 6, "a list is one stop for Tab", count);
    await page.keyboard.press("t");
    expect((await page.evaluate(() => document.documentElement.dataset.theme)) === "light", "t changes the theme", null);
    await page.reload();
    expect((await page.evaluate(() => document.documentElement.dataset.theme)) === "light", "which is kept", null);
  },

  // Another origin on this machine, and a name that is made to lead to the proxy.
  async hostile(browser) {
    const server = createServer((_request, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>x</title>"));
    const own = await listening(server, 0);
    const page = await (await browser.newContext()).newPage();
    const answers = [];
    page.on("response", (answer) => answer.url().includes("/monitor") && answers.push(answer.status()));
    await page.goto(`http://127.0.0.1:${own}/`);
    const got = await page.evaluate(attack, url);
    expect(Object.values(got).every((each) => each === "nothing"), "another origin gets nothing", got);
    expect(answers.length > 0 && answers.every((status) => status === 403), "each of its requests is refused", answers);
    const { port } = new URL(url);
    for (const path of ["/monitor", "/monitor/events", "/monitor/history", "/monitor/page/main.js"]) {
      const answer = await page.goto(`http://${REBOUND}:${port}${path}`);
      expect(answer.status() === 403, `a rebound name gets nothing of ${path}`, await answer.text());
    }
    await page.context().close();
    server.close();
  },

  // Behind another program, under a prefix: the page finds its files and its stream, tells when the proxy is gone, and
  // goes on by itself.
  async gone(browser) {
    const relay = createServer(relayed);
    const port = await listening(relay, 0);
    const { page, context, faults } = await opened(browser, {}, `http://127.0.0.1:${port}${PREFIX}/monitor`);
    await shows(page, "#program", "model-proxy");
    await showsHistory(page);
    expect(faults.length === 0, "it works under a prefix", faults);
    relay.close();
    relay.closeAllConnections();
    await connected(page, "gone");
    expect((await textOf(page, "#banner")).includes("does not answer"), "a proxy that is gone is told", await textOf(page, "#banner"));
    await listening(relay, port);
    await connected(page, "live");
    expect(!(await page.locator("#banner").isVisible()), "and when it is back", null);
    await context.close();
    relay.close();
    relay.closeAllConnections();
  },

  async axe(browser) {
    const long = "long".repeat(60);
    for (const theme of ["light", "dark"]) {
      const { page, context } = await opened(browser, { colorScheme: theme });
      await ask("hello", "session-long", { system: `Working directory: /${long}` });
      await shows(page, "#cached", long);
      for (const width of [360, 800, 1400]) {
        await page.setViewportSize({ width, height: 900 });
        await withoutFaults(page, `${theme}, ${width} wide`);
      }
      await page.locator(OPENER).first().click();
      await withoutFaults(page, `${theme}, details`);
      await page.setViewportSize({ width: 320, height: 900 });
      expect(!(await page.locator("thead button").first().isVisible()), "what cannot be seen takes no focus", null);
      await context.close();
    }
  },

  // A browser asks its user; the key is the password, whatever the name.
  async key(browser) {
    const page = await (await browser.newContext()).newPage();
    const refused = await page.goto(`${url}/monitor`);
    expect(refused.status() === 401 && refused.headers()["www-authenticate"].startsWith("Basic realm="), "without a key the browser is asked for it", refused.status());
    await page.context().close();
    const { page: served, context, faults } = await opened(browser, { httpCredentials: { username: "anybody", password: key } });
    await showsHistory(served);
    expect(faults.length === 0, "with the key page, stream and history work", faults);
    await context.close();
  },
};

function listening(server, port) {
  return new Promise((ready) => server.listen(port, "127.0.0.1", () => ready(server.address().port)));
}

function relayed(request, response) {
  const to = new URL(url);
  const options = { host: to.hostname, port: to.port, path: request.url.slice(PREFIX.length), method: request.method, headers: request.headers };
  const out = forward(options, (answer) => answer.pipe(response.writeHead(answer.statusCode, answer.headers)));
  out.on("error", () => response.destroy());
  response.on("close", () => out.destroy());
  request.pipe(out);
}

async function showsHistory(page) {
  await page.locator("#view-history").click();
  await page.locator("#history .figures").waitFor({ state: "visible", timeout: LIMIT_MS });
  await page.locator("#view-now").click();
}

async function sameNumbers(page, session) {
  const row = page.locator(".sessions tbody tr").filter({ hasText: session.id });
  const requests = await row.locator("td.count").innerText();
  expect(requests.startsWith(String(session.requests)), `requests of ${session.id}`, requests);
  const tokens = await row.locator("td.tokens").getAttribute("title");
  expect(tokens === `${session.input_tokens.toLocaleString("en")} tokens in, ${session.output_tokens.toLocaleString("en")} out`, `tokens of ${session.id}`, tokens);
  const model = await row.locator("td.what").innerText();
  expect(model.includes(session.provider) && model.includes(session.resolved), `provider and model of ${session.id}`, model);
}

async function withoutFaults(page, where) {
  await page.evaluate(axe);
  const { violations, passes } = await page.evaluate(() => globalThis.axe.run());
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  expect(passes.length > 20 && bad.length === 0, `axe finds nothing: ${where}`, bad.map(({ id, nodes }) => [id, nodes[0].html]));
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect(over <= 0, `nothing to scroll sideways: ${where}`, over);
}

// Runs in the hostile page: every way in which a page can ask another origin.
async function attack(target) {
  const seen = async (asked) => {
    try {
      return (await asked()) || "nothing";
    } catch {
      return "nothing";
    }
  };
  const asFetch = (options) => seen(async () => (await fetch(`${target}/monitor`, options)).text());
  const asElement = (tag, attributes, read) =>
    seen(() => new Promise((resolve) => {
      const element = Object.assign(document.createElement(tag), attributes);
      element.onload = () => resolve(read(element));
      element.onerror = () => resolve("");
      setTimeout(() => resolve(""), 1500);
      document.body.append(element);
    }));
  const events = () => seen(() => new Promise((resolve) => {
    const source = new EventSource(`${target}/monitor/events`);
    source.onmessage = (event) => resolve(event.data);
    source.onerror = () => resolve("");
  }));
  const loaded = () => "loaded";
  const inside = (frame) => {
    try {
      return frame.contentDocument?.body.innerText ?? "";
    } catch {
      return "";
    }
  };
  const names = ["fetch", "opaque fetch", "with credentials", "events", "script", "module", "image", "style", "frame"];
  const got = await Promise.all([
    asFetch({}),
    asFetch({ mode: "no-cors" }),
    asFetch({ credentials: "include", headers: { accept: "text/html" } }),
    events(),
    asElement("script", { src: `${target}/monitor/page/main.js` }, loaded),
    asElement("script", { src: `${target}/monitor/page/format.js`, type: "module" }, loaded),
    asElement("img", { src: `${target}/monitor/page/icon.svg` }, loaded),
    asElement("link", { href: `${target}/monitor/page/page.css`, rel: "stylesheet" }, loaded),
    asElement("iframe", { src: `${target}/monitor` }, inside),
  ]);
  return Object.fromEntries(names.map((name, index) => [name, got[index]]));
}

const browser = await chromium.launch({
  executablePath: await packed.executablePath(),
  // None of the package's own: they turn off the protection that is tried here.
  args: ["--no-sandbox", "--no-zygote", "--disable-gpu", `--host-resolver-rules=MAP ${REBOUND} 127.0.0.1`],
});
const ALL = { ...CHECKS, ...historyChecks({ url, ask, opened, expect, textOf, focused, withoutFaults, LIMIT_MS }) };
try {
  for (const name of wanted.split(",")) await ALL[name](browser);
} finally {
  await browser.close();
}
