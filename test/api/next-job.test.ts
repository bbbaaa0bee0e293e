import { expect, onTestFinished, test } from 'vitest';
import { nextJob } from '../../src/api/next-job.ts';
import { addOnlyTenant, boundTenant } from '../../src/engine/index.ts';
import type { Engine, Tenant } from '../../src/engine/index.ts';
import { newMemory, openTestEngine } from '../support/engine-fixture.ts';

test('jobs that are watched are read together, whatever the callers are', async () => {
  await using fixture = await openTestEngine();
  const jobs = await Promise.all(
    Array.from({ length: 30 }, (_, no) => fixture.add({ content: `Ferry ${no} leaves.` })),
  );
  const reads: (readonly string[])[] = [];
  const { tenant } = fixture;
  const engine: Pick<Engine, 'tenant'> = {
    tenant: async () => ({
      ...tenant,
      as: () => ({
        ...tenant,
        findJobs(ids) {
          reads.push(ids);
          return tenant.findJobs(ids);
        },
      }),
    }),
  };
  const read = () => Promise.all(jobs.map(({ jobId }) => nextJob(engine, 'default', jobId)));
  const found = await read();
  expect(found).toEqual(await Promise.all(jobs.map(({ jobId }) => tenant.getJob(jobId))));
  expect(reads).toHaveLength(1);
  await expect(nextJob(engine, 'default', '01a1fe30-e25d-71cf-b719-06918c2a54a4')).rejects.toMatchObject({
    code: 'not_found',
  });
  expect(reads).toHaveLength(2);
});

test('whose job it is is told without the texts of its memory', async () => {
  const fixture = await openTestEngine();
  onTestFinished(() => fixture.close());
  const ann = fixture.tenant.as('ann-key');
  const { outcomes } = await ann.addMemories([
    newMemory({ content: 'Ferry leaves.', userId: 'watched-ann', tags: ['quay'] }),
  ]);
  const jobId = (outcomes[0] as unknown as { jobId: string }).jobId;
  const noTexts: Tenant = {
    ...fixture.tenant,
    getMemory: () => Promise.reject(new Error('the whole memory was read')),
  };
  const views = (user: string, tags: string[], key: string) => [
    boundTenant(noTexts, { userId: user, tags }),
    addOnlyTenant(noTexts, key),
    addOnlyTenant(boundTenant(noTexts, { userId: user, tags }), key),
  ];
  for (const view of views('watched-ann', ['quay'], 'ann-key')) expect((await view.getJob(jobId)).id).toBe(jobId);
  for (const view of views('watched-bob', ['quay'], 'bob-key'))
    await expect(view.getJob(jobId)).rejects.toMatchObject({ code: 'not_found' });
});
