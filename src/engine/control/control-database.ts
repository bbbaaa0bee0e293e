/**
 * The types of the control database, which holds tenants, hashed keys and settings of each tenant. All tenants share
 * it.
 */

import type { FederationServers } from './federation.ts';
import type { LimitRecords } from './limits.ts';
import type { ServiceAudit } from './service-audit.ts';

/** The id of the tenant that every data folder has. */
export const DEFAULT_TENANT = 'default';

/** The roles of keys; `Role` says what each may do. */
export const ROLES = ['read', 'add', 'write', 'admin'] as const;
/**
 * What a key may do in its tenant: `read` queries and reads; `add` adds memories and documents, follows its own jobs,
 * and neither reads nor deletes anything else; `write` does both, and also changes and deletes; `admin` may also change
 * settings and manage jobs, embedding models and providers.
 */
export type Role = (typeof ROLES)[number];

/** Bounds of what a key is given. */
export const KEY_LIMITS = { label: 200, tenants: 100, userId: 256, tags: 16, tag: 128 } as const;

export interface TenantRecord {
  readonly id: string;
  /** Time the tenant was created, Unix ms. */
  readonly createdAt: number;
}

/** What a new key is given. */
export interface NewKey {
  /** The tenant that the key reaches; a request that names no tenant is for this one. */
  readonly tenantId: string;
  /** Further tenants, which a request must name; none by default. */
  readonly furtherTenantIds?: readonly string[] | undefined;
  readonly role: Role;
  /** Name that a person gives the key, at most 200 characters; '' by default. */
  readonly label?: string | undefined;
  /** The only user whose memories and documents the key reaches; those of all users if left out. */
  readonly userId?: string | undefined;
  /** Tags without which the key reaches no memory and no document; none by default. */
  readonly tags?: readonly string[] | undefined;
  /** Time from which the key is refused, Unix ms; never if left out. */
  readonly expiresAt?: number | undefined;
}

/** A key without its secret. Times are Unix ms. */
export interface KeyRecord {
  /** Public part of the key, 16 hexadecimal digits. */
  readonly id: string;
  /** The first of `tenantIds`. */
  readonly tenantId: string;
  /** Tenants that the key reaches; a request that names no tenant is for the first. */
  readonly tenantIds: readonly string[];
  readonly role: Role;
  /** Name that a person gave the key; '' for none. */
  readonly label: string;
  /** The only user whose memories and documents the key reaches; null for all users. */
  readonly userId: string | null;
  /** Tags without which the key reaches no memory and no document; empty for no such bound. */
  readonly tags: readonly string[];
  readonly createdAt: number;
  /** Time from which the key is refused; null for never. */
  readonly expiresAt: number | null;
  /** Time the key was last accepted, up to a minute late; null for never. */
  readonly lastUsedAt: number | null;
  /** Time the key was revoked; null for a key that was not. */
  readonly revokedAt: number | null;
}

/** The memories and documents that a caller may reach; a field that is left out bounds nothing. */
export interface Bounds {
  /** The only user whose memories and documents are reached. */
  readonly userId?: string | undefined;
  /** Tags that every memory and document must carry; never empty. */
  readonly tags?: readonly string[] | undefined;
}

/** In whose name a request is made: the tenant, what the caller may do there, and what it may reach. */
export interface Principal extends Bounds {
  readonly tenantId: string;
  readonly role: Role;
  /**
   * Id of the key; 'environment' for OM_API_KEY; 'anonymous' if no key is configured, and for public reads; for a token
   * of OM_OIDC_ISSUER `oidc:` and 16 hexadecimal digits that stand for its issuer and subject.
   */
  readonly keyId: string;
}

/** Whom a key stands for, before the request has chosen one of its tenants. */
export interface Holder extends Principal {
  /** Tenants that the holder may choose from; `tenantId` is the first. */
  readonly tenantIds: readonly string[];
  /** Time from which the key is refused, Unix ms; null for never. */
  readonly expiresAt: number | null;
}

/** Sessions of browsers, which a key or a token is exchanged for. All processes see the same sessions. */
export interface Sessions {
  /**
   * Opens a session, which ends after 12 hours, and earlier once its key or token is no longer valid.
   * @returns the secret of the session, which is stored only as a hash
   */
  open(holder: Holder): { readonly secret: string; readonly expiresAt: number };
  /** Returns in whose name the requests of a session are made; undefined for a session that has ended or never was. */
  find(secret: string): Holder | undefined;
  /** Ends a session; an unknown one changes nothing. */
  close(secret: string): void;
}

/** Tenants, keys and settings, as `openControlDatabase` opens them. */
export interface ControlDatabase {
  /** Lists all tenants, oldest first; the default tenant always exists. */
  listTenants(): TenantRecord[];
  /** Returns the path of the tenant's database file, which need not exist yet; undefined for an unknown tenant. */
  findTenantPath(tenantId: string): string | undefined;
  /**
   * Creates a tenant, but not its file.
   * @param tenantId 1 to 64 characters of a-z, 0-9, - and _, starting with a letter or digit
   * @param by id of the key that asked for it, for the audit log; by default a command on this machine
   * @throws EngineError `invalid`; `conflict` if the tenant or a file of its name exists
   */
  createTenant(tenantId: string, by?: string): TenantRecord;
  /** Deletes the tenant, its keys, settings and files. Throws `not_found`; `invalid` for the default tenant. */
  eraseTenant(tenantId: string): void;

  /**
   * Creates a key. Its secret is returned once and stored only as a hash.
   * @param by id of the key that asked for it, as in `createTenant`
   * @throws EngineError `not_found` for an unknown tenant; `invalid` for an admin's key that is bound to a user or
   *   tags, a time of expiry that is over, or a value beyond `KEY_LIMITS`
   */
  createKey(key: NewKey, by?: string): { readonly record: KeyRecord; readonly secret: string };
  /** Lists the keys of a tenant, or of all tenants by default, oldest first and with the revoked ones. */
  listKeys(tenantId?: string): KeyRecord[];
  /**
   * Revokes a key; every process notices within a second. To revoke a revoked key changes nothing. Throws `not_found`.
   * @param keyId the id of the key, not its secret
   * @param by id of the key that asked for it, as in `createTenant`
   */
  revokeKey(keyId: string, by?: string): void;

  /**
   * True if a request without a key may be served as the default tenant's admin: neither OM_API_KEY nor OM_OIDC_ISSUER
   * is set, and this process has never seen a key that was not revoked. Neither revoking the last key nor its expiry
   * opens anything before a restart, and an expired key keeps a data folder closed until it is revoked.
   */
  isOpen(): boolean;
  /**
   * Returns the holder of a key by its whole secret; undefined for an unknown, revoked, expired or malformed key. The
   * holder of OM_API_KEY is the default tenant's admin. Digests are compared in constant time.
   */
  authenticate(secret: string): Holder | undefined;
  /**
   * True if the key or token of a holder would still be accepted: it was neither revoked nor has it expired, and no
   * tenant of it was erased. Replies that go on for long ask this again and again, which costs no hash.
   */
  isHolderValid(holder: Holder): boolean;

  /** The limits of tenants and keys. */
  readonly limits: LimitRecords;

  /** The sessions of browsers. */
  readonly sessions: Sessions;

  /** Other servers that questions of a tenant may be sent to. */
  readonly federation: FederationServers;

  /** The log of what was done with all this; each function above adds its record in its own transaction. */
  readonly audit: ServiceAudit;

  /** Returns a tenant's setting; undefined if it was never stored or the tenant is unknown. */
  getSetting(tenantId: string, name: string): string | undefined;
  /** Stores a tenant's setting in place of an earlier value. Throws `not_found` for an unknown tenant. */
  putSetting(tenantId: string, name: string, value: string): void;
  close(): void;
}
