/** Translates jobs to the field names of the API. */
import type { Job, StepBacklog } from '../../engine/index.ts';
import type { BacklogItem, JobItem } from '../schemas/jobs.ts';

export function jobItem(job: Job): JobItem {
  return {
    id: job.id,
    kind: job.kind,
    memory_id: job.memoryId,
    document_id: job.documentId,
    step: job.step,
    state: job.state,
    priority: job.priority,
    attempts: job.attempts,
    crashes: job.crashes,
    run_at: job.runAt,
    error: job.error,
    created_at: job.createdAt,
    updated_at: job.updatedAt,
    finished_at: job.finishedAt,
    timeline: job.timeline,
  };
}

/**
 * Translates the backlog of a step, with the age of its oldest job.
 * @param now current time, Unix ms
 */
export function backlogItem({ step, queued, active, failed, oldestAt }: StepBacklog, now: number): BacklogItem {
  return { step, queued, active, failed, oldest_age_ms: Math.max(0, now - oldestAt) };
}
