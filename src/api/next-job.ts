import { setTimeout as pause } from 'node:timers/promises';
import { type Engine, EngineError, type Job } from '../engine/index.ts';
import { STREAM_READER } from './next-look.ts';

/** Time between the first call that waits for a read of jobs and the read (ms). */
const GATHER_MS = 50;

/** The next read of the jobs of a tenant, for all that wait for it. */
interface JobRead {
  readonly ids: Set<string>;
  readonly jobs: Promise<ReadonlyMap<string, Job>>;
}

const reads = new WeakMap<object, Map<string, JobRead>>();

/**
 * Returns a job of a tenant as it is at the tenant's next read of jobs, which begins 50 ms after the first call that
 * waits for it. However many jobs of the tenant are waited for, one read brings all of them. The caller has checked
 * that the job may be seen.
 * @throws EngineError `not_found` if the job does not exist; what `Engine.tenant` and `findJobs` throw
 */
export async function nextJob(engine: Pick<Engine, 'tenant'>, tenantId: string, id: string): Promise<Job> {
  const ofEngine = reads.get(engine) ?? new Map<string, JobRead>();
  reads.set(engine, ofEngine);
  let read = ofEngine.get(tenantId);
  if (read === undefined) {
    const ids = new Set<string>();
    const jobs = pause(GATHER_MS).then(async () => {
      ofEngine.delete(tenantId);
      const found = await (await engine.tenant(tenantId)).as(STREAM_READER).findJobs([...ids]);
      return new Map(found.map((job) => [job.id, job]));
    });
    ofEngine.set(tenantId, (read = { ids, jobs }));
  }
  read.ids.add(id);
  const job = (await read.jobs).get(id);
  if (job === undefined) throw new EngineError('not_found', 'no job with this id');
  return job;
}
