import { createHash, randomBytes } from 'node:crypto';
import { EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import type { AuditDetail } from '../types.ts';
import type { AccessCache } from './access-cache.ts';
import { KEY_LIMITS, type ControlDatabase, type KeyRecord, type NewKey } from './control-database.ts';
import type { ControlFile, KeyRow } from './control-file.ts';
import type { ServiceAudit } from './service-audit.ts';
import type { KeyUses } from './key-uses.ts';

interface KeyContext {
  readonly file: ControlFile;
  readonly cache: AccessCache;
  readonly uses: KeyUses;
  readonly clock: Clock;
  readonly audit: ServiceAudit;
  /** Throws EngineError `not_found` for an unknown tenant. */
  readonly requireTenant: (tenantId: string) => void;
}

/** Makes the functions by which keys are created, listed and revoked. */
export function createKeyRecords({
  file: { statements },
  cache,
  uses,
  clock,
  audit,
  requireTenant,
}: KeyContext): Pick<ControlDatabase, 'createKey' | 'listKeys' | 'pageKeys' | 'findKey' | 'countKeys' | 'revokeKey'> {
  /**
   * Throws EngineError `conflict` if a tenant has 1,000 keys that are not revoked, expired ones included. Each process
   * holds all of these keys in memory, and reads them again after each change by another process.
   */
  const requireRoom = (tenantId: string) => {
    if (statements.countKeysOf.get(tenantId)!.live < KEY_LIMITS.keys) return;
    throw new EngineError('conflict', `a tenant has at most ${KEY_LIMITS.keys} keys: revoke some first`);
  };
  /** Returns a key with its last use, of which the file may not know yet: it is written within a minute. */
  const shown = (row: KeyRow): KeyRecord => {
    const usedAt = uses.lastUse(row.id);
    return {
      ...recordOf(row),
      lastUsedAt: usedAt === null ? row.last_used_at : Math.max(usedAt, row.last_used_at ?? 0),
    };
  };
  return {
    createKey(key, by) {
      requireSound(key, clock.now());
      const id = randomBytes(8).toString('hex');
      const secret = `cairn_${id}_${randomBytes(32).toString('base64url')}`;
      const record = newRecord(id, key, clock.now());
      for (const tenantId of record.tenantIds) requireTenant(tenantId);
      cache.changeKey(id, () => {
        for (const tenantId of record.tenantIds) requireRoom(tenantId);
        statements.deleteOldRevokedKeys.run(record.tenantId, KEY_LIMITS.revoked);
        statements.insertKey.run({ ...record, tags: JSON.stringify(record.tags), digest: digestOf(secret) });
        record.tenantIds.forEach((tenantId, place) => statements.insertKeyTenant.run(id, place, tenantId));
        audit.append('key.create', describe(record), by);
      });
      return { record, secret };
    },

    listKeys(tenantId) {
      const rows = tenantId === undefined ? statements.listKeys.all() : statements.listKeysOf.all(tenantId);
      return rows.map(shown);
    },
    pageKeys(tenantId, { limit, offset }) {
      const items = statements.pageKeysOf.all(tenantId, limit, offset).map(shown);
      return { items, total: statements.countKeysOf.get(tenantId)!.total };
    },
    findKey(keyId) {
      const row = statements.findKey.get(keyId);
      return row && recordOf(row);
    },
    countKeys: () => new Map(statements.countLiveKeys.all().map((row) => [row.tenant_id, row.live])),

    revokeKey(keyId, by) {
      if (statements.findKey.get(keyId)?.revoked_at != null) return;
      cache.changeKey(keyId, () => {
        if (statements.revokeKey.run(clock.now(), keyId).changes === 0) {
          // The message does not repeat the id, which may be a whole secret, given by mistake.
          throw new EngineError('not_found', 'no key has this id');
        }
        audit.append('key.revoke', { id: keyId }, by);
      });
    },
  };
}

/**
 * Returns the SHA-256 of a secret. It has neither a salt nor a slow hash, since all secrets whose digests are stored
 * have 256 random bits. Do not store the digest of a secret that a person chose, such as `OM_API_KEY`.
 */
export function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret, 'utf8').digest();
}

function newRecord(id: string, key: NewKey, now: number): KeyRecord {
  return {
    id,
    tenantId: key.tenantId,
    tenantIds: [...new Set([key.tenantId, ...(key.furtherTenantIds ?? [])])],
    role: key.role,
    label: key.label ?? '',
    userId: key.userId ?? null,
    tags: [...new Set(key.tags)],
    createdAt: now,
    expiresAt: key.expiresAt ?? null,
    lastUsedAt: null,
    revokedAt: null,
  };
}

/** Describes a new key for the audit log: whether it is bound to a user or to tags, but not to which ones. */
function describe({ id, tenantIds, role, userId, tags, expiresAt }: KeyRecord): AuditDetail {
  const bounds = [...(userId === null ? [] : ['user']), ...(tags.length === 0 ? [] : ['tags'])];
  return { id, tenants: tenantIds, role, bounds, ...(expiresAt === null ? {} : { expires_at: expiresAt }) };
}

/** Characters that no name, user or tag may contain: they are invisible or break lines. */
const CONTROL_CHARACTER = /\p{Cc}/u;

/**
 * Throws EngineError `invalid` for a new key with the role `admin` that is bound to a user or tags, for one whose
 * expiry is not in the future, and for one which has a value beyond `KEY_LIMITS`, an empty user or tag, or a control
 * character. Whether its tenants exist is not checked here.
 */
function requireSound(key: NewKey, now: number): void {
  const { role, label = '', userId, tags = [], expiresAt } = key;
  const isLabel = (text: string, most: number) => text !== '' && text.length <= most && !CONTROL_CHARACTER.test(text);
  const checks: readonly (readonly [isSound: boolean, problem: string])[] = [
    [(key.furtherTenantIds?.length ?? 0) < KEY_LIMITS.tenants, `a key reaches at most ${KEY_LIMITS.tenants} tenants`],
    [
      label === '' || isLabel(label, KEY_LIMITS.label),
      `name: expected at most ${KEY_LIMITS.label} characters, without control characters`,
    ],
    [
      userId === undefined || isLabel(userId, KEY_LIMITS.userId),
      `user: expected 1..${KEY_LIMITS.userId} characters, without control characters`,
    ],
    [
      tags.length <= KEY_LIMITS.tags && tags.every((tag) => isLabel(tag, KEY_LIMITS.tag)),
      `tags: expected at most ${KEY_LIMITS.tags} of 1..${KEY_LIMITS.tag} characters, without control characters`,
    ],
    [
      role !== 'admin' || (userId === undefined && tags.length === 0),
      'an admin reaches all of a tenant: a key that is bound to a user or tags has the role read, add or write',
    ],
    [
      expiresAt === undefined || (Number.isSafeInteger(expiresAt) && expiresAt > now),
      'expires: expected a time that is still to come',
    ],
  ];
  const problem = checks.find(([isSound]) => !isSound)?.[1];
  if (problem !== undefined) throw new EngineError('invalid', problem);
}

function recordOf(row: KeyRow): KeyRecord {
  const tenantIds = JSON.parse(row.tenants) as string[];
  return {
    id: row.id,
    tenantId: tenantIds[0]!,
    tenantIds,
    role: row.role,
    label: row.label,
    userId: row.user_id,
    tags: JSON.parse(row.tags) as string[],
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
  };
}
