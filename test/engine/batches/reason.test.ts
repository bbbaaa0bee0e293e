import { expect, onTestFinished, test } from 'vitest';
import { runNextQuestions } from '../../../src/engine/batches/reason.ts';
import { EngineError } from '../../../src/engine/errors.ts';
import type { LanguageModel } from '../../../src/engine/ports.ts';
import { createProviderHealth } from '../../../src/engine/providers/provider-health.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test('a run of consolidation that is handed back for its next slice is not counted as a finished job', async () => {
  const fixture = await openTestEngine();
  onTestFinished(() => fixture.close());
  for (const more of ['', ' with Zanzibar', ', and in winter too'])
    await fixture.add({
      content: `Ana swims every Monday morning at the city pool before work${more}.`,
      userId: 'ana',
    });
  await fixture.drain();
  const { jobId } = await fixture.tenant.consolidate({ userId: 'ana', again: false });
  const finished = async () => {
    const { values } = await fixture.batch.metrics.finishedJobs.get();
    return values.find(({ labels }) => labels.state === 'done')?.value ?? 0;
  };
  const before = await finished();

  const stop = new AbortController();
  const running = runNextQuestions(fixture.batch, { alone: false }, stop.signal);
  stop.abort();
  expect(await running).toMatchObject({ claimed: 1 });
  expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'queued' });
  expect(await finished()).toBe(before);

  expect(await fixture.askQuestions()).toMatchObject({ claimed: 1 });
  expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'done' });
  expect(await finished()).toBe(before + 1);
});

test('a long run is not charged for two failures of the language model between which its own slices were answered', async () => {
  await using fixture = await openTestEngine({ settings: { OM_JOB_ATTEMPTS: '1' } });
  for (const userId of ['ana', 'ben'])
    for (const more of ['', ' with Zanzibar', ', and in winter too'])
      await fixture.add({ content: `Ana swims every Monday morning at the city pool before work${more}.`, userId });
  await fixture.drain();
  const { jobId } = await fixture.tenant.consolidate({ userId: null, again: false });
  const provider = createProviderHealth();
  const ask = (complete: LanguageModel['complete'], signal?: AbortSignal) => {
    const languageModel = { provider: 'test', model: 'test', complete };
    return runNextQuestions({ ...fixture.batch, languageModel, provider }, { alone: false }, signal);
  };
  const fails = () => Promise.reject(new EngineError('unavailable', 'the language model is slow'));

  expect(await ask(fails)).toMatchObject({ claimed: 1 });
  const stop = new AbortController();
  const answered = ask(async () => {
    stop.abort();
    return { text: JSON.stringify({ text: 'Ana swims on Mondays.' }), inputTokens: 1, outputTokens: 1 };
  }, stop.signal);
  expect(await answered).toMatchObject({ claimed: 1 });
  expect(await fixture.tenant.listConsolidations({ limit: 10 })).toMatchObject([{ method: 'model' }]);
  expect(await ask(fails)).toMatchObject({ claimed: 1 });
  expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'queued', attempts: 0 });
});
