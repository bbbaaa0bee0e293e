/**
 * The front door of the engine, and of the package `cairn-memory`. The API, the workers, the command line and other
 * programs import the engine here. Modules that take memory and time to load (SQLite, the metrics' package, the engine
 * itself) are loaded by the functions that need them, so that importing this module costs little.
 */

import type { Metrics } from './metrics.ts';
import type { OpenEngineOptions } from './open-engine.ts';
import type { Config } from './config.ts';
import type { ControlDatabase } from './control/control-database.ts';
import type { GuessLimit } from './control/guess-limit.ts';
import type { Engine } from './engine.ts';
import type { Clock } from './ports.ts';
import type { InstanceLock } from './store/instance-lock.ts';

export * from './types.ts';
export { assert, EngineError, isEngineError, reviveError, serialiseError } from './errors.ts';
export { isStillUnreachable } from './store/postgres/unreachable-database.ts';
export type { EngineErrorOptions, ErrorCode, SerialisedError } from './errors.ts';
export type { Engine, Tenant } from './engine.ts';
export type { Lead } from './lead.ts';
export type { OpenEngineOptions } from './open-engine.ts';
export { HOME_DATABASE, isLoopback, listSettings, queueServerOf, readConfig, type Config } from './config.ts';
export { newMemory } from './new-memory.ts';
export { inOwnMemory } from './own-memory.ts';
export { currentShare, nextSharedTurn, nextTurn, noteConnection, readInTurn, runInShare, takeTurn } from './turns.ts';
export { VERSION } from './version.ts';

// ── Tenants and keys ─────────────────────────────────────────────────────────────────────────────────────────────────

export { privacySetting, readPrivacyPolicy } from './control/privacy-policy.ts';
export { addOnlyTenant } from './tenant/add-only-tenant.ts';
export { boundTenant, isBound } from './tenant/bound-tenant.ts';
export { requireOwnUser } from './tenant/bound-reach.ts';
export { DEFAULT_TENANT, KEY_LIMITS } from './control/control-database.ts';
export type { ControlDatabase, KeyRecord, NewKey, TenantRecord } from './control/control-database.ts';
export type { ChangeInput, ChangeResult, ControlChange } from './control/control-changes.ts';
export { isFromHere, readCredential } from './control/credential.ts';
export { LIMIT_NAMES, MAX_LIMIT, type LimitChanges, type LimitName, type LimitScope } from './control/limits.ts';
export type { RateClass } from './control/rate-limits.ts';
export { FEDERATION_LIMITS } from './control/federation.ts';
export type { FederationAccess, FederationRecord } from './control/federation.ts';
export { networkOf } from './control/network-of.ts';
export { isStillAdmitted, requireStillAdmitted } from './control/still-admitted.ts';
export { judgeMetricsReader, type MetricsVerdict } from './control/metrics-access.ts';

// ── Memories and documents as a server shows them ────────────────────────────────────────────────────────────────────

export { spanningReceipt } from './commands/write-receipt.ts';
export { DocumentError } from './documents/document-error.ts';
export { splitFrontMatter } from './documents/formats/front-matter.ts';
export { FORMAT_NAMES, formatOfExtension, formatOfMediaType } from './documents/media-types.ts';
export { PARSE_LIMITS } from './documents/parsed-document.ts';
export { SNIFFED_BYTES, sniffFormat } from './documents/sniff.ts';
export { DAY_MS, decayLambdaOf } from './dynamics.ts';
export { shownEntities, shownGist } from './entities/skim.ts';
export { jsonOf, JsonText } from './store/json-text.ts';
export { charactersOf } from './store/memory-weight.ts';
export { packInput } from './store/packed-json.ts';
export { fuseMembers } from './retrieve/fuse-members.ts';
export { quoteLine, quoteMemories, quoteText, type QuotedMemories } from './retrieve/quote.ts';
export { sectorPatterns } from './sectors/score-patterns.ts';
export { SECTOR_PROFILES } from './sectors/profiles.ts';
export { beginningOf } from './text/beginning-of.ts';
export { textOfValue } from './text/json-value-text.ts';

// ── What runs beside an engine ───────────────────────────────────────────────────────────────────────────────────────

export { stepPayloadSchema } from './job-payloads.ts';
export type { StepPayload } from './job-payloads.ts';
export { QUEUE_NAMES, TICK } from './jobs.ts';
export type { QueuedStep, QueueName } from './jobs.ts';
export { silentLogger, systemClock } from './ports.ts';
export type { Clock, JobDispatcher, Logger, QueueState } from './ports.ts';
export type { Attributes, Span, SpanOptions, Tracing } from './tracing.ts';
export { releaseMemoryAfterStart } from './release-memory.ts';
export type { InstanceLock, Metrics };

/**
 * Opens the files of a data folder, makes those that are missing, and returns the engine that reads and writes them.
 * It takes no lock of the folder and runs no jobs. The caller closes it.
 */
export async function openEngine(options: OpenEngineOptions): Promise<Engine> {
  return (await import('./open-engine.ts')).openEngine(options);
}

/** Opens the control database of a data folder, and makes it if there is none. The caller closes it. */
export async function openControlDatabase(config: Config, clock: Clock): Promise<ControlDatabase> {
  return (await import('./control/open-control-database.ts')).openControlDatabase(config, clock);
}

/** Opens the limit on guesses of keys that the processes of a data folder share. The caller closes it. */
export async function openGuessLimit({ paths, OM_MAX_WRONG_KEYS }: Config, clock: Clock): Promise<GuessLimit> {
  return (await import('./control/guess-limit.ts')).openGuessLimit(paths.guesses, OM_MAX_WRONG_KEYS, clock);
}

/** Makes the metrics in which an engine or a worker counts, with a new registry, so that every count starts at 0. */
export async function createMetrics(): Promise<Metrics> {
  return (await import('./metrics.ts')).createMetrics();
}

/**
 * Locks a data folder for this process alone. The lock is released at the end of the process, or by `release`.
 * @param file path of the lock file, `config.paths.lock`; it is made if needed
 * @throws EngineError `conflict` while another process, or another lock of this one, holds or shares it; `invalid` for
 *   a path where no file can be
 */
export async function acquireInstanceLock(file: string): Promise<InstanceLock> {
  return (await import('./store/instance-lock.ts')).acquireInstanceLock(file);
}

/**
 * Shares the lock of a data folder with any number of other processes, and keeps out those that want the folder alone.
 * The lock is released at the end of the process, or by `release`.
 * @param file path of the lock file, `config.paths.lock`; it is made if needed
 * @throws EngineError `conflict` while another process, or another lock of this one, holds it alone; `invalid` for a
 *   path where no file can be
 */
export async function shareInstanceLock(file: string): Promise<InstanceLock> {
  return (await import('./store/instance-lock.ts')).shareInstanceLock(file);
}
