import { expect, test } from 'vitest';
import { openTestEngine, createManualClock, START } from '../../support/engine-fixture.ts';

const HOUR_MS = 3_600_000;

/** An engine whose clock advances by a minute at each look at it from `begin` on, with a set of 200 questions. */
async function openSlow() {
  const time = createManualClock();
  let onLook = () => {};
  const now = () => {
    onLook();
    return time.now();
  };
  const settings = { OM_EMBEDDINGS: 'none', OM_EVAL_EVERY: '1d' };
  const fixture = await openTestEngine({ settings, clock: { ...time, now } });
  const items = Array.from({ length: 200 }, (_, at) => ({ query: `question ${at}`, expected: [] }));
  await fixture.tenant.putEval({ name: 'long', guard: false, items });
  // The connection that looks is open before the clock is watched.
  expect(fixture.get(CLAIM)).toBeNull();
  const begin = (look: () => void) => {
    onLook = () => {
      time.advance(60_000);
      look();
    };
  };
  return { fixture, time, begin, end: () => (onLook = () => {}) };
}

const CLAIM = `SELECT max(value) FROM store_info WHERE key = 'claim_eval'`;

test('a run of evaluation sets that takes hours keeps its claim, so no other process asks the same', async () => {
  const { time, begin, end, ...slow } = await openSlow();
  await using fixture = slow.fixture;
  let lapsed = 0;
  begin(() => {
    const claim = fixture.get<string | null>(CLAIM);
    if (claim !== null && Number(claim.split(' ')[0]) <= time.now()) lapsed += 1;
  });
  expect(await fixture.tenant.runDueEvals()).toBe(1);
  end();
  expect(time.now()).toBeGreaterThan(START + 2 * HOUR_MS);
  expect(lapsed).toBe(0);
  expect([await fixture.tenant.runDueEvals(), await fixture.tenant.listEvalRuns('long', 10)]).toMatchObject([0, [{}]]);
});

test('a run of evaluation sets whose claim another process took over ends', async () => {
  const { time, begin, end, ...slow } = await openSlow();
  await using fixture = slow.fixture;
  const theirs = `${time.now() + 50 * HOUR_MS} another`;
  begin(() => {
    if (fixture.get<string | null>(CLAIM) === null || time.now() < START + HOUR_MS / 2) return;
    fixture.store
      .prepare(`UPDATE store_info SET value = ? WHERE key = 'claim_eval' AND value <> ?`)
      .run(theirs, theirs);
  });
  await expect(fixture.tenant.runDueEvals()).rejects.toMatchObject({ code: 'conflict' });
  end();
  expect([fixture.get(CLAIM), await fixture.tenant.listEvalRuns('long', 10)]).toEqual([theirs, []]);
});
