/**
 * The exports for workers: the steps that they run and the ledgers they take jobs from. They are no part of the
 * package, and are apart from index.ts because they load everything that a step needs.
 */

export { giveWay, NICENESS, ownThreadId } from './give-way.ts';
export { limitTime, unscheduledMs } from './limit-time.ts';
export { runNamedQuestions, runNextQuestions } from './batches/reason.ts';
export type { BatchContext, BatchResult } from './batches/batch-context.ts';
export { runBatch, runNamed } from './batches/run-batch.ts';
export { runNextDocument } from './batches/run-document.ts';
export { counterPlaceOf } from './control/counter-file.ts';
export { openControlDatabase } from './control/open-control-database.ts';
export { followPlacements } from './control/follow-placement.ts';
export { openRateLimits } from './control/rate-limits.ts';
export { readRetrievalDefaultsOf } from './control/retrieval-defaults.ts';
export { openParts } from './parts/engine-parts.ts';
export { createTenantGuards } from './parts/tenant-guards.ts';
export { createTenantShares } from './parts/tenant-shares.ts';
export { languageModelOf } from './providers/language-model-of.ts';
export { createProviderHealth, type ProviderHealth } from './providers/provider-health.ts';
export type { StepContext } from './steps/step-context.ts';
export { appendEmbedLog } from './store/embeddings.ts';
export { hasDueJob, hasDueJobAt, hasDueSuspect, postponeSuspects } from './store/job-claims.ts';
export { renewLeases } from './store/job-leases.ts';
export { startMigrations } from './store/postgres/migrate-databases.ts';
export type { TenantPool } from './tenant-file/tenant-pool.ts';
export { checkpoint } from './upkeep/checkpoint.ts';
export { openDueTenants, type DueTenants } from './upkeep/due-tenants.ts';
export { cleanAfterErase } from './upkeep/clean-after-erase.ts';
export { recoverJobs } from './upkeep/recover-jobs.ts';
export { runDueSchedules } from './upkeep/schedules.ts';
export type { MaintenanceContext } from './upkeep/maintenance-context.ts';
