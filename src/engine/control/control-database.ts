/**
 * The types of the control database, which holds tenants, hashed keys and settings of each tenant. All tenants share
 * it.
 */

import type { Holder, Page, Role } from '../types.ts';
import type { FederationServers } from './federation.ts';
import type { LimitRecords } from './limits.ts';
import type { ServiceAudit } from './service-audit.ts';

/** The id of the tenant that every data folder has. */
export const DEFAULT_TENANT = 'default';

/**
 * Greatest values of a new key: characters of its label, its user id and each of its tags; numbers of its tenants and
 * tags. `keys` is the greatest number of keys of a tenant that are not revoked, `revoked` that of revoked ones that are
 * kept.
 */
export const KEY_LIMITS = {
  label: 200,
  tenants: 100,
  userId: 256,
  tags: 16,
  tag: 128,
  keys: 1_000,
  revoked: 1_000,
} as const;

/** A tenant as the control database lists it. */
export interface TenantRecord {
  readonly id: string;
  /** Time the tenant was created, Unix ms. */
  readonly createdAt: number;
  /**
   * Name of the further database (OM_DATABASES) in which the tenant is; null for the database of OM_DATABASE_URL, and
   * for a tenant in a file.
   */
  readonly database: string | null;
  /**
   * Whether a move of the tenant to another database is under way, or was broken off and is not ended yet. Its writes
   * may be refused meanwhile.
   */
  readonly isMoving: boolean;
}

/** The properties of a key that is to be created. */
export interface NewKey {
  /** The tenant that the key reaches. A request that names no tenant goes to this one. */
  readonly tenantId: string;
  /** Further tenants that the key reaches if a request names them; none by default. */
  readonly furtherTenantIds?: readonly string[] | undefined;
  readonly role: Role;
  /** Name that a person gives the key, at most 200 characters; '' by default. */
  readonly label?: string | undefined;
  /** The only user whose memories and documents the key reaches; those of all users if left out. */
  readonly userId?: string | undefined;
  /** Tags that a memory or document must all carry for the key to reach it; none by default. */
  readonly tags?: readonly string[] | undefined;
  /** Time from which the key is refused, Unix ms; if it is left out, the key never expires. */
  readonly expiresAt?: number | undefined;
}

/** A key without its secret. Times are Unix ms. */
export interface KeyRecord {
  /** Public part of the key, 16 hexadecimal digits. */
  readonly id: string;
  /** The first of `tenantIds`. */
  readonly tenantId: string;
  /** Tenants that the key reaches. A request that names no tenant goes to the first. */
  readonly tenantIds: readonly string[];
  readonly role: Role;
  /** Name that a person gave the key; '' if it has none. */
  readonly label: string;
  /** The only user whose memories and documents the key reaches; null if it reaches those of all users. */
  readonly userId: string | null;
  /** Tags that a memory or document must all carry for the key to reach it; empty if tags do not bind the key. */
  readonly tags: readonly string[];
  readonly createdAt: number;
  /** Time from which the key is refused; null if it never expires. */
  readonly expiresAt: number | null;
  /**
   * Time at which the key was last accepted; null if it has never been used. Uses are stored up to a minute later, and
   * `findKey` knows only of stored ones.
   */
  readonly lastUsedAt: number | null;
  /** Time at which the key was revoked; null if it was not. */
  readonly revokedAt: number | null;
}

/** Sessions of browsers, each opened with a key or a token. All processes see the same sessions. */
export interface Sessions {
  /**
   * Opens a session. It ends after 12 hours, or earlier, when its key or token is no longer valid. A key has at most 50
   * sessions: a further one ends the oldest. The commit that opens it records `console.sign_in` in the audit log.
   * @returns the secret of the session, which is stored only as a hash, and when it ends (Unix ms)
   * @throws EngineError `rate_limited` beyond 30 sessions of one key within a minute, counted in this process alone
   */
  open(holder: Holder): { readonly secret: string; readonly expiresAt: number };
  /**
   * Returns the caller of a session by the session's secret; undefined if the session has ended or never existed, or if
   * its key or token is no longer valid. With PostgreSQL, a session that another process ended may be found for another
   * second.
   * @throws EngineError `unavailable` with PostgreSQL, for a session that was opened by another process and that this
   *   one never found, after 20 such ones within a second
   */
  find(secret: string): Holder | undefined;
  /** Ends a session; does nothing for an unknown secret. */
  close(secret: string): void;
  /** Notes that another thread of this process opened or ended a session, so that `find` reads its row again. */
  noteChange(secret: string): void;
}

/** The id of a key, and the time of its last use (Unix ms). */
export type KeyUse = readonly [keyId: string, usedAt: number];

/** The tenants, keys and settings of a data folder, as `openControlDatabase` opens them. */
export interface ControlDatabase {
  /**
   * Lists the tenants, oldest first, without those that `cairn move` took away one by one. The default tenant is always
   * there.
   */
  listTenants(): TenantRecord[];
  /**
   * Returns the path of the tenant's database file, which need not exist yet; undefined for an unknown tenant, and for
   * one that `cairn move` took away. With OM_DATABASE_URL there is no such file: the path only names the tenant and its
   * placement, and its uploads lie beside it. A tenant that was moved to another of the service's databases has another
   * path from then on. With OM_DATABASE_URL this method also has a move of the tenant ended whose process is gone, as
   * `settleMovesBy` says, once in two seconds at most. Until it is ended, writes of the tenant are refused with
   * `unavailable`.
   */
  findTenantPath(tenantId: string): string | undefined;
  /**
   * Returns those of the ids that are tenants', in their order. However many are unknown, it looks into the control
   * database at most once. In PostgreSQL it may miss a new tenant for 250 ms.
   */
  existingTenants(tenantIds: readonly string[]): string[];
  /**
   * Whether a path is that of a tenant in its present database, and no move of the tenant to another one is under way.
   */
  isSettledPath(path: string): boolean;
  /** Returns a sentence that says where `cairn move` took a tenant; undefined for a tenant that was not moved alone. */
  findMoved(tenantId: string): string | undefined;
  /**
   * Creates a tenant, but not its file.
   * @param tenantId 1 to 64 characters of a-z, 0-9, - and _, starting with a letter or digit
   * @param by id of the key of the caller, for the audit log; by default a command on this machine
   * @param database name of the database in which the tenant is placed: one of OM_DATABASES, or 'home' for the one of
   *   OM_DATABASE_URL, which is the default; only with OM_DATABASE_URL
   * @throws EngineError `invalid` for another form of id or an unknown database; `conflict` if the tenant exists, or
   *   if a file of its name or, with OM_DATABASE_URL, rows of an earlier tenant of its name are still there, or if the
   *   further database has tenants of another service or is that of OM_DATABASE_URL; `unavailable` if the tenant's
   *   database does not answer
   */
  createTenant(tenantId: string, by?: string, database?: string): TenantRecord;
  /**
   * Deletes a tenant with its settings and files, the sessions that could use it, and the keys that reach no other
   * tenant. Throws EngineError `not_found`; `invalid` for the default tenant; `conflict` while it moves to another
   * database; `unavailable` if a database with rows of the tenant does not answer or is not known. The tenant is still
   * listed then, and the call is to be repeated; if one did not answer, rows in others may be erased already.
   */
  eraseTenant(tenantId: string): void;

  /**
   * Creates a key. Its secret is returned once and stored only as a hash. It also deletes revoked keys whose first
   * tenant is that of the new key, except the 1,000 that were revoked last.
   * @param by id of the key of the caller, for the audit log; by default a command on this machine
   * @throws EngineError `not_found` for an unknown tenant; `invalid` for an admin's key that is bound to a user or
   *   tags, an expiry that is not in the future, a value beyond `KEY_LIMITS`, an empty user or tag, or a control
   *   character; `conflict` if a tenant of the key has 1,000 keys that are not revoked
   */
  createKey(key: NewKey, by?: string): { readonly record: KeyRecord; readonly secret: string };
  /**
   * Lists the keys that reach a tenant, or all keys by default, oldest first and revoked ones included. `lastUsedAt`
   * counts uses by this process that are not stored yet.
   */
  listKeys(tenantId?: string): KeyRecord[];
  /**
   * Lists a page of the keys that reach a tenant, newest first and revoked ones included; `total` counts all of them.
   * `lastUsedAt` counts uses by this process that are not stored yet.
   */
  pageKeys(tenantId: string, page: Page): { readonly items: KeyRecord[]; readonly total: number };
  /** Finds a key by its id (not its secret), even if it is revoked; undefined for an unknown id. */
  findKey(keyId: string): KeyRecord | undefined;
  /**
   * Counts the keys that reach each tenant and are not revoked, expired ones included, by tenant id; a tenant without
   * any is left out.
   */
  countKeys(): ReadonlyMap<string, number>;
  /**
   * Revokes a key; every process notices within a second. A key that is revoked already keeps the time at which it was
   * revoked. Throws EngineError `not_found`.
   * @param keyId the id of the key, not its secret
   * @param by id of the key of the caller, for the audit log; by default a command on this machine
   */
  revokeKey(keyId: string, by?: string): void;

  /**
   * Whether a request without a key may be served as the default tenant's admin: neither OM_API_KEY nor OM_OIDC_ISSUER
   * is set, and this process has never seen a key that was not revoked. If the last key is revoked or expires, the
   * answer stays false until a restart; an expired key counts as a key until it is revoked.
   */
  isOpen(): boolean;
  /**
   * Returns the holder of a key by its whole secret; undefined for an unknown, revoked, expired or malformed key. The
   * holder of OM_API_KEY is the default tenant's admin. Digests are compared in constant time. The use of a stored key
   * is recorded (`KeyRecord.lastUsedAt`).
   */
  authenticate(secret: string): Holder | undefined;
  /**
   * Whether the key or token of a holder would still be accepted: it was not revoked, it has not expired, and none of
   * its tenants was erased. Long replies call this again and again, which costs no hash.
   */
  isHolderValid(holder: Holder): boolean;

  /** The limits of tenants and keys. */
  readonly limits: LimitRecords;

  /** The sessions of browsers. */
  readonly sessions: Sessions;

  /** Other servers to which queries of a tenant may be forwarded. */
  readonly federation: FederationServers;

  /**
   * The audit log of tenants, keys, limits and registered servers. A method that changes one of them adds its record in
   * the transaction of the change.
   */
  readonly audit: ServiceAudit;

  /** Returns a tenant's setting; undefined if it was never stored or the tenant is unknown. */
  getSetting(tenantId: string, name: string): string | undefined;
  /** Stores a tenant's setting, replacing any earlier value. Throws EngineError `not_found` for an unknown tenant. */
  putSetting(tenantId: string, name: string, value: string): void;
  /**
   * Stores a tenant's setting unless there is one, so that processes that do so at once store one value.
   * @returns the value that is stored
   * @throws EngineError `not_found` for an unknown tenant
   */
  makeSetting(tenantId: string, name: string, value: string): string;
  /**
   * Resolves when the next call of each method finds what others have changed before this call. In PostgreSQL that
   * takes up to 250 ms, or 5 s while the database does not answer, when every method throws `unavailable`.
   */
  seeChanges(): Promise<void>;
  /**
   * Whether PostgreSQL has not answered a background thread for over a second; always false for a file. While it is
   * true, a thread that serves requests looks into no tenant of this database, so that it does not wait.
   */
  isSilent(): boolean;
  /** Stores when keys were last used. Throws the errors of the database. */
  storeKeyUses(uses: readonly KeyUse[]): void;
  /**
   * Sets the function that stores the key uses which `authenticate` recorded, once a minute; by default this thread
   * stores them. `close` stores the last ones on this thread.
   */
  storeKeyUsesBy(store: (uses: readonly KeyUse[]) => Promise<unknown>): void;
  /**
   * Ends the move of a tenant to another database if its process is gone; does nothing to a move that goes on. It waits
   * for the databases of the move. Throws their errors.
   */
  settleMove(tenantId: string): void;
  /**
   * Sets the function by which `findTenantPath` and `isSettledPath` have a move ended; by default this thread calls
   * `settleMove`.
   */
  settleMovesBy(settle: (tenantId: string) => Promise<unknown>): void;
  close(): void;
}
