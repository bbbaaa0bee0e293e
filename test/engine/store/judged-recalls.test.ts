import { expect, test } from 'vitest';
import { rescore } from '../../../src/engine/retrieve/replay.ts';
import { withVectorWeight } from '../../../src/engine/retrieve/reweigh.ts';
import { listJudgedRecalls } from '../../../src/engine/store/judged-recalls.ts';
import { findRecall } from '../../../src/engine/store/recalls.ts';
import type { RecallRecord } from '../../../src/engine/types.ts';
import { newMemory, openTestEngine } from '../../support/engine-fixture.ts';
import { askAndJudge } from '../../support/judge-recall.ts';

async function openFilled() {
  const fixture = await openTestEngine();
  const contents = Array.from(
    { length: 8 },
    (_, no) => `The harbour ferry ${no} leaves at ${no + 6} from pier ${no % 3}.`,
  );
  await fixture.tenant.addMemories(contents.map((content) => newMemory({ content, userId: 'ana' })));
  await fixture.drain();
  return fixture;
}

test('recalls are listed that have feedback of both kinds, of the profile, the newest first', async () => {
  await using fixture = await openFilled();
  const { tenant, store } = fixture;
  const first = await askAndJudge(tenant, ['used', 'wrong']);
  await askAndJudge(tenant, ['used', 'used']);
  await askAndJudge(tenant, ['useless', 'wrong']);
  await askAndJudge(tenant, ['used', 'useless'], 'fusion');
  const last = await askAndJudge(tenant, ['useless', 'used']);
  const listed = listJudgedRecalls(store, 'composite');
  expect(listed.map(({ recallId }) => recallId)).toEqual([last, first]);
});

test('what is listed of a recall suffices to score it again, and no more is read', async () => {
  await using fixture = await openFilled();
  const { tenant, store } = fixture;
  const recallId = await askAndJudge(tenant, ['used', 'wrong']);
  const whole = findRecall(store, recallId)!;
  const [listed] = listJudgedRecalls(store, 'composite');
  const changes = { weights: { recency: 0.3, similarity: 0.5 }, minScore: 0.1, relativeFloor: 0, k: 20 };
  const scoresOf = (recall: RecallRecord, vectorWeight: number) =>
    rescore(withVectorWeight(recall, vectorWeight), changes).hits.map(({ id, score, rawScore }) => [
      id,
      score,
      rawScore,
    ]);
  expect(whole.candidates.length).toBeGreaterThan(3);
  for (const weight of [0.2, 0.7]) expect(scoresOf(listed!, weight)).toEqual(scoresOf(whole, weight));
  expect(listed!.feedback).toEqual(whole.feedback);
  expect(JSON.stringify(listed).length).toBeLessThan(0.7 * JSON.stringify(whole).length);
  expect(JSON.stringify(listed)).not.toContain('ferry');
});

test('no further recall is listed after 30,000 candidates', async () => {
  await using fixture = await openFilled();
  const { tenant, store } = fixture;
  const recallIds: string[] = [];
  for (let no = 0; no < 5; no += 1) recallIds.push(await askAndJudge(tenant, ['used', 'wrong']));
  store.db.exec(
    `WITH RECURSIVE places (place) AS (SELECT 100 UNION ALL SELECT place + 1 FROM places WHERE place < 10099)
     INSERT INTO recall_candidates (recall_no, place, memory, data)
     SELECT recall_no, places.place, memory, data FROM recall_candidates c, places WHERE c.place = 0`,
  );
  const listed = listJudgedRecalls(store, 'composite');
  expect(listed.map(({ recallId }) => recallId)).toEqual(recallIds.toReversed().slice(0, 3));
});
