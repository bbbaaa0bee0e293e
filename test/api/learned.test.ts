import { expect, onTestFinished, test } from 'vitest';
import { runCairn } from '../cli/run-cairn.ts';
import { createManualClock, START } from '../support/engine-fixture.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { teachRecency } from '../support/teach-weights.ts';
import { tempFolder } from '../support/temp-folder.ts';

interface Proposal {
  readonly id: string;
  readonly state: string;
  readonly before: { readonly weights: Record<string, number> };
  readonly after: { readonly weights: Record<string, number>; readonly min_score: number };
}

test('weights are learned from feedback, accepted and reverted by a person, and never applied before', async () => {
  const clock = createManualClock(START);
  const api = await startApi({ folder: tempFolder(), clock, settings: { OM_EMBEDDINGS: 'none' } });
  onTestFinished(() => api.stop());
  const none = await api.request('POST', '/learned');
  expect(none.body).toEqual({ learned: null, reason: expect.stringMatching(/at least 40 recalls.*there are 0$/) });

  await teachRecency(api, clock);

  const proposed = await api.request('POST', '/learned');
  const { learned, reason } = proposed.body as unknown as { learned: Proposal; reason: string | null };
  expect([proposed.status, reason, learned.state]).toEqual([200, null, 'proposed']);
  expect(learned.after.weights['recency']).toBeGreaterThan(learned.before.weights['recency']!);
  expect((await api.request('GET', '/settings/retrieval')).body).toEqual({});

  const settings = { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY };
  const accepted = await runCairn(['learn', '--accept', learned.id], { settings });
  expect([accepted.code, accepted.stdout]).toEqual([0, expect.stringContaining('accepted')]);
  const used = (await api.request('GET', '/settings/retrieval')).body;
  expect(used).toEqual({ weights: learned.after.weights, min_score: learned.after.min_score });
  expect((await api.request('POST', `/learned/${learned.id}/accept`)).status).toBe(409);

  await api.request('PUT', '/settings/retrieval', { body: { ...used, max_hops: 1 } });
  expect((await api.request('POST', `/learned/${learned.id}/revert`)).status).toBe(409);
  await api.request('PUT', '/settings/retrieval', { body: used });
  const reverted = await api.request('POST', `/learned/${learned.id}/revert`);
  expect([reverted.status, reverted.body['state']]).toEqual([200, 'reverted']);
  expect((await api.request('GET', '/settings/retrieval')).body).toEqual({});
  const list = (await api.request('GET', '/learned')).body as unknown as { items: Proposal[] };
  expect(list.items.map(({ id, state }) => [id, state])).toEqual([[learned.id, 'reverted']]);
  expect((await api.request('POST', '/learned/01a21580-5d1c-7d6a-9a35-0f4a8a0b6f11/accept')).status).toBe(404);
  expect((await runCairn(['learn', '--list'], { settings })).stdout).toContain('reverted');

  // A proposal that was learned under other defaults would overwrite them.
  const again = (await api.request('POST', '/learned')).body as unknown as { learned: Proposal };
  await api.request('PUT', '/settings/retrieval', { body: { weights: { recency: 0.2 } } });
  expect((await api.request('POST', `/learned/${again.learned.id}/accept`)).status).toBe(409);
  expect((await api.request('GET', '/settings/retrieval')).body).toEqual({ weights: { recency: 0.2 } });
});
