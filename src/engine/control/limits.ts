/**
 * The limits of keys and tenants. A setting of the service gives the default of each limit. A value that is stored for
 * a tenant replaces the default, and a value that is stored for a key replaces that of its tenant.
 */

/**
 * Name of the setting that gives the default of each limit. The first four are rates a minute for each key; the others
 * apply to a whole tenant.
 */
export const LIMIT_SETTING = {
  queries: 'OM_RATE_QUERIES',
  adds: 'OM_RATE_ADDS',
  batch_items: 'OM_RATE_BATCH_ITEMS',
  upload_mb: 'OM_RATE_UPLOAD_MB',
  event_streams: 'OM_TENANT_EVENT_STREAMS',
  parse_seconds: 'OM_TENANT_PARSE_SECONDS',
  fetches: 'OM_TENANT_FETCHES',
  fetches_at_once: 'OM_TENANT_FETCHES_AT_ONCE',
  max_mb: 'OM_TENANT_MAX_MB',
  max_memories: 'OM_TENANT_MAX_MEMORIES',
} as const;

export type LimitName = keyof typeof LIMIT_SETTING;
/** The names of all limits. */
export const LIMIT_NAMES = Object.keys(LIMIT_SETTING) as [LimitName, ...LimitName[]];
/** The limits that a single key may have. */
export const LIMITS_OF_KEYS: ReadonlySet<LimitName> = new Set(['queries', 'adds', 'batch_items', 'upload_mb']);
/** Largest value of a limit. */
export const MAX_LIMIT = 1_000_000_000;

/** The value of each limit; 0 means that there is no limit. */
export type Limits = Readonly<Record<LimitName, number>>;

/** The owner of stored limits: a tenant, or one key in it. */
export interface LimitScope {
  readonly tenantId: string;
  /**
   * Id (not the secret) of the key whose own limits are meant; `environment` for the key of `OM_API_KEY`; left out for
   * the limits of the tenant itself.
   */
  readonly keyId?: string | undefined;
}

/** New values of limits. Null removes the stored value; undefined leaves it unchanged. */
export type LimitChanges = { readonly [Name in LimitName]?: number | null | undefined };

/** Limits as they are stored and as they apply. A change by any process applies in all others within a second. */
export interface LimitRecords {
  /**
   * Returns the limits that apply to a tenant or key: for each, the value stored for the key, else that of its tenant,
   * else that of the settings. It looks into the control database at most every 250 ms, so each request may call it.
   */
  inForce(scope: LimitScope): Limits;
  /** Returns only the limits that are stored for exactly this tenant or key, without inherited ones. */
  own(scope: LimitScope): Partial<Limits>;
  /** Throws EngineError `not_found` for an unknown tenant, or a key that the tenant does not have. */
  require(scope: LimitScope): void;
  /**
   * Stores limits, or removes them, so that the value of the tenant or of the settings applies again.
   * @param by id of the key of the caller, for the audit log; by default a command on this machine
   * @throws EngineError `not_found` for an unknown tenant or key; `invalid` for a limit that a key cannot have, or for
   *   a value that is no whole number in 0..1,000,000,000
   */
  change(scope: LimitScope, changes: LimitChanges, by?: string): void;
}
