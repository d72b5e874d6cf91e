import { expect } from "chai";
import { countSlots, nextSlot, nextSlots, type Timing } from "../../src/automation/times.ts";

const timing = (timezone: string, more: Partial<Timing>): Timing => ({ timezone, anchorAt: new Date(0), ...more });
const shown = (times: Date[]) => times.map((time) => time.toISOString().slice(0, 16));
const nextAfter = (from: string) => new Date(from);

/** Pattern, zone, where it begins, and its next times in UTC. */
const cases: [what: string, cron: string, zone: string, from: string, times: string[]][] = [
  [
    "a time of day in the gap fires at its end, that day alone",
    "30 2 * * *",
    "Europe/Berlin",
    "2026-03-28T12:00Z",
    ["2026-03-29T01:00", "2026-03-30T00:30"],
  ],
  [
    "a time of day that comes twice fires once",
    "30 2 * * *",
    "Europe/Berlin",
    "2026-10-24T12:00Z",
    ["2026-10-25T00:30", "2026-10-26T01:30"],
  ],
  [
    "two times of day keep the one that falls into the gap",
    "30 2,14 * * *",
    "Europe/Berlin",
    "2026-03-28T14:00Z",
    ["2026-03-29T01:00", "2026-03-29T12:30"],
  ],
  [
    "each hour goes on over the gap",
    "30 * * * *",
    "Europe/Berlin",
    "2026-03-29T00:00Z",
    ["2026-03-29T00:30", "2026-03-29T01:30", "2026-03-29T02:30"],
  ],
  [
    "each hour fires in both of the repeated hours",
    "30 * * * *",
    "Europe/Berlin",
    "2026-10-25T00:00Z",
    ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30"],
  ],
  [
    "the gap of New York",
    "30 2 * * *",
    "America/New_York",
    "2026-03-07T12:00Z",
    ["2026-03-08T07:00", "2026-03-09T06:30"],
  ],
  [
    "the repeated hour of New York",
    "30 1 * * *",
    "America/New_York",
    "2026-10-31T12:00Z",
    ["2026-11-01T05:30", "2026-11-02T06:30"],
  ],
  [
    "a gap of half an hour",
    "15 2 * * *",
    "Australia/Lord_Howe",
    "2026-10-03T00:00Z",
    ["2026-10-03T15:30", "2026-10-04T15:15"],
  ],
  [
    "half an hour that comes twice",
    "45 1 * * *",
    "Australia/Lord_Howe",
    "2026-04-04T00:00Z",
    ["2026-04-04T14:45", "2026-04-05T15:15"],
  ],
  [
    "quarters over half an hour that comes twice",
    "*/15 * * * *",
    "Australia/Lord_Howe",
    "2026-04-04T14:25Z",
    ["2026-04-04T14:30", "2026-04-04T14:45", "2026-04-04T15:00", "2026-04-04T15:15", "2026-04-04T15:30"],
  ],
  [
    "a zone without daylight saving",
    "30 9 * * *",
    "Asia/Kolkata",
    "2026-03-28T12:00Z",
    ["2026-03-29T04:00", "2026-03-30T04:00"],
  ],
];

describe("the times of a schedule", () => {
  for (const [what, cron, zone, from, times] of cases) {
    it(`over daylight saving: ${what} (${cron}, ${zone})`, () => {
      const found = nextSlots(timing(zone, { cron }), nextAfter(from), times.length);
      expect(shown(found)).to.deep.equal(times);
    });
  }

  it("never go back, skip none and repeat none over a year of each zone", () => {
    for (const zone of ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]) {
      let at = nextAfter("2026-01-01T00:00Z");
      for (let hour = 0; hour < 366 * 24; hour += 1) {
        const next = nextSlot(timing(zone, { cron: "0,30 * * * *" }), at);
        expect((next?.getTime() ?? 0) - at.getTime(), `${zone} ${at.toISOString()}`).to.equal(1_800_000);
        at = next ?? at;
      }
      const days = nextSlots(timing(zone, { cron: "30 2 * * *" }), nextAfter("2026-01-01T00:00Z"), 365);
      const dates = days.map((day) => new Intl.DateTimeFormat("en-CA", { timeZone: zone }).format(day));
      expect(new Set(dates).size, zone).to.equal(365);
    }
  }).timeout(60_000);

  it("of an interval are counted from where it began, whenever it is asked", () => {
    const every = timing("UTC", { every: 7_000, anchorAt: new Date(1_000) });
    expect(nextSlot(every, new Date(0))).to.deep.equal(new Date(8_000));
    expect(nextSlot(every, new Date(8_000))).to.deep.equal(new Date(15_000));
    expect(nextSlot(every, new Date(14_999))).to.deep.equal(new Date(15_000));
    expect(countSlots(every, new Date(8_000), new Date(36_000))).to.equal(4);
    expect(countSlots(every, new Date(8_000), new Date(80_000_000))).to.equal(1_000);
  });

  it("of a date without an offset are those of its zone", () => {
    const at = (text: string, zone = "Europe/Berlin") =>
      nextSlot(timing(zone, { at: text }), nextAfter("2026-01-01T00:00Z"));
    expect(at("2026-03-29T02:30:00")).to.deep.equal(nextAfter("2026-03-29T01:30:00Z"));
    expect(at("2026-07-01T09:00:00")).to.deep.equal(nextAfter("2026-07-01T07:00:00Z"));
    expect(at("2026-07-01T09:00:00+05:30")).to.deep.equal(nextAfter("2026-07-01T03:30:00Z"));
    expect(at("2025-07-01T09:00:00")).to.equal(undefined);
  });
});
