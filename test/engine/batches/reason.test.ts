import { expect, onTestFinished, test } from 'vitest';
import { runNextQuestions } from '../../../src/engine/batches/reason.ts';
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
