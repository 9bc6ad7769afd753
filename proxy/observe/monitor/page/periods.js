// The times that the history can be seen for, in periods of the reader's own days and hours. Nothing here touches the
// page.

// days  of which today is the last; without it, the hours of today
export const RANGES = {
  today: { label: "Today", unit: "hour", every: 3 },
  week: { label: "7 days", unit: "day", days: 7, every: 1 },
  month: { label: "30 days", unit: "day", days: 30, every: 5 },
  quarter: { label: "90 days", unit: "day", days: 90, every: 14 },
};

const HOUR_MS = 3600 * 1000;
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// The beginnings of the periods and the end of the last one, in seconds since 1970. A day has 23 hours now and then.
export function edgesOf(range, now) {
  const date = new Date(now * 1000);
  const day = (offset) => new Date(date.getFullYear(), date.getMonth(), date.getDate() + offset).getTime();
  const { days } = RANGES[range];
  const edges = [];
  if (days) for (let ago = days - 1; ago >= 0; ago -= 1) edges.push(day(-ago));
  else for (let at = day(0); at < day(1); at += HOUR_MS) edges.push(at);
  return [...edges, day(1)].map((each) => each / 1000);
}

const two = (number) => String(number).padStart(2, "0");

export function hourOf(at) {
  const date = new Date(at * 1000);
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

// In autumn the clock shows some times a second time: by how much it is put back, in seconds.
const PUT_BACK = [1800, 3600];

// 02:00, or 02:00 (again)
function timeOf(at) {
  return hourOf(at) + (PUT_BACK.some((by) => hourOf(at - by) === hourOf(at)) ? " (again)" : "");
}

// 23 Nov
function dateOf(at) {
  const date = new Date(at * 1000);
  return `${date.getDate()} ${MONTHS[date.getMonth()]}`;
}

// Mon 23 Nov
function dayOf(at) {
  return `${DAYS[new Date(at * 1000).getDay()]} ${dateOf(at)}`;
}

// 23 Nov 2026
export function yearDateOf(at) {
  return `${dateOf(at)} ${new Date(at * 1000).getFullYear()}`;
}

// The name of a period: Mon 23 Nov, or 14:00–15:00.
export function periodName(range, edges, index) {
  return RANGES[range].unit === "day" ? dayOf(edges[index]) : `${timeOf(edges[index])}–${timeOf(edges[index + 1])}`;
}

// A moment in the time of a range: 14:05, or Mon 23 Nov 14:05.
export function momentName(range, at) {
  return RANGES[range].unit === "day" ? `${dayOf(at)} ${timeOf(at)}` : timeOf(at);
}

// Words below a picture: [share of the width, words, whether they are shown where there is little room].
export function marksOf(range, edges) {
  const { unit, days, every } = RANGES[range];
  const last = edges.length - 2;
  const marks = [];
  // Days are counted from today, hours from midnight.
  for (let at = days ? last : 0; at >= 0 && at <= last; at += days ? -every : every) {
    const words = unit === "hour" ? hourOf(edges[at]) : at === last ? "today" : days < 10 ? dayOf(edges[at]).slice(0, -4) : dateOf(edges[at]);
    marks.push([(at + (unit === "hour" ? 0 : 0.5)) / (last + 1), words, marks.length % 2 === 0]);
  }
  return marks;
}
