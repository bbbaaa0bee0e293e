/**
 * The workers' own door: the steps they run and the ledgers they run them from. No part of the package, and apart from the front door
 * since it loads everything that a step needs.
 */

export { runNamedQuestions, runNextQuestions } from './batches/reason.ts';
export type { BatchContext } from './batches/batch-context.ts';
export { runBatch, runNamed, type BatchResult } from './batches/run-batch.ts';
export { runNextDocument } from './batches/run-document.ts';
export { openControlDatabase } from './control/open-control-database.ts';
export { openParts } from './open-engine.ts';
export type { EmbeddingGatherer } from './providers/embedding-gatherer.ts';
export { createProviderHealth, type ProviderHealth } from './providers/retry.ts';
export type { StepContext } from './steps/step-context.ts';
export { appendEmbedLog } from './store/embeddings.ts';
export { hasDueJob, hasDueJobAt, hasDueSuspect, postponeSuspects, renewLeases } from './store/jobs.ts';
export type { TenantPool } from './tenant-file/tenant-pool.ts';
export { checkpoint, cleanAfterErase, recoverJobs, runDueSchedules } from './upkeep/maintain.ts';
export type { MaintenanceContext } from './upkeep/maintain.ts';
