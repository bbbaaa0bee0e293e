import { timingSafeEqual } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { HOME_DATABASE, type Config } from '../config.ts';
import { removeUploads } from '../documents/uploads.ts';
import { EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { listOwnCopies } from '../store/own-copies.ts';
import { openAccessCache, type AccessCache } from './access-cache.ts';
import type { Holder } from '../types.ts';
import { DEFAULT_TENANT, type ControlDatabase } from './control-database.ts';
import { openControlFile, type ControlFile } from './control-file.ts';
import {
  destroyDataKey,
  ensureDataKey,
  requireNoKeyChange,
  SHARED_OWNER,
  useMasterKey,
  type KeySettings,
} from './data-keys.ts';
import { createKeyRecords, digestOf } from './key-records.ts';
import { createKeyUses, type KeyUses } from './key-uses.ts';
import { deleteMark, describeMark, findMark } from './moved-marks.ts';
import { openPostgresControl } from './open-postgres-control.ts';
import { createPlacedTenants, type PlacedTenants } from './place-tenants.ts';
import { openFederation } from './open-federation.ts';
import { openLimits } from './open-limits.ts';
import { openServiceAudit } from './open-service-audit.ts';
import { deleteSessionsOf, digestOfIssuer, openSessions } from './open-sessions.ts';
import type { ServiceAudit } from './service-audit.ts';
import { requireWholeFolder, TENANT_ID, tenantAtPath, tenantFile } from './tenant-paths.ts';

/** Form of a key's secret. The first group of the match is the key's id. */
const KEY_SECRET = /^cairn_([0-9a-f]{16})_[\w-]{43}$/;
/** Form of the id of a key in the control database. Ids of other holders, such as `environment`, do not match. */
const KEY_ID = /^[0-9a-f]{16}$/;
/** The caller whom OM_API_KEY identifies: an admin of the default tenant, of no other one, without an end. */
const ENVIRONMENT: Holder = {
  tenantId: DEFAULT_TENANT,
  tenantIds: [DEFAULT_TENANT],
  role: 'admin',
  keyId: 'environment',
  expiresAt: null,
};
/**
 * Digest that matches no secret. A secret whose key id is unknown is compared with it, so that it is refused no faster
 * than a wrong secret of a stored key.
 */
const NO_DIGEST = Buffer.alloc(32);

interface Context {
  readonly file: ControlFile;
  readonly cache: AccessCache;
  readonly uses: KeyUses;
  readonly paths: Config['paths'];
  readonly clock: Clock;
  readonly keys: KeySettings;
  readonly placed: PlacedTenants;
  readonly audit: ServiceAudit;
}

/**
 * Opens the control database beside the default tenant's file, or with OM_DATABASE_URL in PostgreSQL, and makes it and
 * the default tenant if they are absent.
 * @throws EngineError `invalid` for a path that cannot be a database's; `unprocessable` for a file that is no database
 *   or is from a newer Cairn, or if a change of the data keys was interrupted; `conflict` if its tenants were moved
 *   away, a move into this folder is not complete, or OM_DATABASE_URL is set although the folder has a control file;
 *   errors of the database as EngineErrors
 */
export function openControlDatabase(config: Config, clock: Clock): ControlDatabase {
  useMasterKey(config);
  const file = openFile(config);
  requireNotMoved(file);
  try {
    requireNoKeyChange(file.db);
  } catch (error) {
    file.close();
    throw error;
  }
  const { statements } = file;
  if (statements.findTenant.get(DEFAULT_TENANT) === undefined) {
    file.write(() => statements.insertTenant.run(DEFAULT_TENANT, clock.now()));
  }
  for (const owner of [SHARED_OWNER, DEFAULT_TENANT]) ensureDataKey(file.db, config, owner);
  const uses = createKeyUses(file, clock);
  const audit = openServiceAudit(file, config, clock);
  const cache = openAccessCache(file);
  const context: Context = {
    file,
    cache,
    uses,
    paths: config.paths,
    clock,
    keys: config,
    placed: createPlacedTenants(file, config),
    audit,
  };
  const environmentDigest = config.OM_API_KEY === undefined ? undefined : digestOf(config.OM_API_KEY);
  const callers = authentication(context, config, environmentDigest);
  return {
    ...tenantRecords(context),
    ...createKeyRecords({ ...context, requireTenant: (tenantId) => requireTenant(context, tenantId) }),
    ...callers,
    sessions: openSessions({
      ...{ file, cache, clock, audit, environmentDigest, isHolderValid: callers.isHolderValid },
      issuerDigest: digestOfIssuer(config),
    }),
    limits: openLimits(file, config, audit),
    federation: openFederation(file, { config, clock, audit }),
    audit,

    getSetting: (tenantId, name) => cache.getSetting(tenantId, name),
    putSetting(tenantId, name, value) {
      requireTenant(context, tenantId);
      cache.changeSetting(tenantId, name, value);
    },
    makeSetting(tenantId, name, value) {
      requireTenant(context, tenantId);
      return cache.makeSetting(tenantId, name, value);
    },
    seeChanges: () => nextLook(file),
    isSilent: () => isSilent(file),
    storeKeyUses: uses.store,
    storeKeyUsesBy: uses.storeBy,
    settleMove: context.placed.settleHere,
    settleMovesBy: context.placed.settleBy,

    close() {
      uses.close();
      file.close();
    },
  };
}

/** Time without an answer of PostgreSQL from which on it counts as silent (ns). */
const SILENT_NS = 1_000_000_000n;

function isSilent({ watched }: ControlFile): boolean {
  if (watched === null) return false;
  try {
    return process.hrtime.bigint() - watched.latest().readAt > SILENT_NS;
  } catch {
    return true; // Nothing was read for much longer.
  }
}

/** Pause between two checks whether the generation counter was read again (ms). */
const CHECK_MS = 10;

/**
 * Waits until the background thread has read the generation counter once more, or until it has had no answer for 5 s. A
 * file needs no such read.
 */
async function nextLook({ watched }: ControlFile): Promise<void> {
  if (watched === null) return;
  const since = process.hrtime.bigint();
  try {
    while (watched.latest().readAt < since) await pause(CHECK_MS);
  } catch {
    // It has been silent for too long.
  }
}

/**
 * Opens the control database: its file, or with OM_DATABASE_URL its schema in PostgreSQL.
 * @throws EngineError `conflict` for a data folder that has a control file although OM_DATABASE_URL is set, or into
 *   which a move is not complete
 */
function openFile(config: Config): ControlFile {
  const { OM_DATABASE_URL: database, paths } = config;
  if (database === undefined) {
    requireWholeFolder(paths);
    return openControlFile(paths.control);
  }
  if (fs.existsSync(paths.control)) {
    throw new EngineError(
      'conflict',
      `OM_DATABASE_URL is set, but tenants, keys and settings stand in ${paths.control}: ` +
        'move them with `cairn move`, or if that was done, set OM_DB_PATH to a path in another folder',
    );
  }
  return openPostgresControl(database);
}

/**
 * Closes a control database whose tenants were all moved away, and throws EngineError `conflict`, which says where they
 * are; does nothing to any other.
 */
function requireNotMoved(file: ControlFile): void {
  const mark = findMark(file, null);
  if (mark === undefined) return;
  file.close();
  throw new EngineError('conflict', describeMark(mark, 'the data that is kept here'));
}

type TenantRecords = Pick<
  ControlDatabase,
  'listTenants' | 'existingTenants' | 'findTenantPath' | 'isSettledPath' | 'findMoved' | 'createTenant' | 'eraseTenant'
>;

function tenantRecords(context: Context): TenantRecords {
  const { cache, paths, clock, keys, placed, audit, file } = context;
  const findTenantPath = (tenantId: string) => {
    const tenant = cache.findTenant(tenantId);
    if (tenant?.isMoving === true) placed.settle(tenantId);
    return tenant && tenantFile(paths, tenantId, { database: tenant.database, number: tenant.placed });
  };
  return {
    listTenants: () => cache.listTenants(),
    existingTenants: (tenantIds) => cache.existingTenants(tenantIds),
    findTenantPath,

    isSettledPath(path) {
      const found = tenantAtPath(paths, path);
      if (found === undefined || findTenantPath(found.tenant) !== path) return false;
      return cache.findTenant(found.tenant)?.isMoving === false;
    },

    findMoved(tenantId) {
      const mark = findMark(file, tenantId);
      return mark && describeMark(mark, 'this tenant');
    },

    createTenant(tenantId, by, database) {
      requireTenantId(tenantId);
      if (cache.findTenant(tenantId) !== undefined) throw existsAlready(tenantId);
      const place = placed.prepare(tenantId, database);
      const create = () => {
        const tenant = { id: tenantId, createdAt: clock.now() };
        if (file.statements.insertTenant.run(tenant.id, tenant.createdAt).changes === 0) throw existsAlready(tenantId);
        requireNoFiles(tenantFile(paths, tenantId), tenantId);
        place.make();
        ensureDataKey(file.db, keys, tenantId);
        const isElsewhere = database !== undefined && database !== HOME_DATABASE;
        audit.append('tenant.create', { tenant: tenantId, ...(isElsewhere ? { database } : {}) }, by);
        return { ...tenant, database: isElsewhere ? database : null, isMoving: false };
      };
      try {
        return cache.change(create);
      } finally {
        place.close();
      }
    },

    eraseTenant(tenantId) {
      if (tenantId === DEFAULT_TENANT) throw new EngineError('invalid', 'the default tenant cannot be erased');
      const present = findTenantPath(tenantId);
      const held = placed.holdStill(tenantId);
      try {
        // Other writes wait for the write below, which erases what came meanwhile. After a kill this can be repeated.
        if (present !== undefined) placed.erase(tenantId, placed.findRows(tenantId));
        cache.change(() => eraseInWrite(context, tenantId, present));
      } finally {
        held.close();
      }
      // The log still has the page with the wrapped key.
      if (keys.masterKey !== null) file.db?.pragma('wal_checkpoint(TRUNCATE)');
    },
  };
}

/**
 * Erases the rows and files of a tenant, its keys and what signed in to it. Call it inside a write.
 * @param present path of the tenant's file; undefined for an unknown tenant
 * @throws EngineError `not_found` for an unknown tenant
 */
function eraseInWrite({ file, paths, placed, audit }: Context, tenantId: string, present: string | undefined): void {
  const databases = placed.findRows(tenantId);
  if (file.statements.deleteTenant.run(tenantId).changes === 0)
    throw new EngineError('not_found', `no tenant ${describeId(tenantId)}`);
  destroyDataKey(file.db, tenantId);
  file.statements.deleteKeysWithoutTenant.run();
  // A tenant that is made later under this id must not be open to those who were signed in to this one.
  deleteSessionsOf(file, tenantId);
  deleteMark(file, tenantId);
  audit.append('tenant.erase', { tenant: tenantId });
  // Files are removed before the commit: if that fails, or a crash comes between, the erasure can be repeated.
  placed.erase(tenantId, databases);
  const unplaced = tenantFile(paths, tenantId);
  for (const name of listOwnCopies(unplaced)) fs.rmSync(name, { force: true });
  for (const file of new Set([unplaced, present ?? unplaced])) removeUploads(file);
}

function existsAlready(tenantId: string): EngineError {
  return new EngineError('conflict', `tenant ${tenantId} exists`);
}

/**
 * Throws EngineError `conflict` if a database file is at the path of a new tenant, or a copy of one beside it: they may
 * hold an earlier tenant's memories, which the new tenant must not inherit.
 */
function requireNoFiles(file: string, tenantId: string): void {
  const [left] = listOwnCopies(file);
  if (left === undefined) return;
  const name = path.basename(left);
  throw new EngineError('conflict', `${name} of an earlier tenant ${tenantId} is still there: move it away`);
}

function requireTenantId(id: string): void {
  if (TENANT_ID.test(id)) return;
  throw new EngineError(
    'invalid',
    `tenant id ${describeId(id)}: expected 1..64 of a-z, 0-9, - and _, starting with a letter or digit`,
  );
}

/** Creates the functions that identify callers. */
function authentication(
  { cache, uses, clock }: Context,
  { OM_OIDC_ISSUER }: Config,
  environmentDigest: Buffer | undefined,
): Pick<ControlDatabase, 'isOpen' | 'authenticate' | 'isHolderValid'> {
  const isOver = ({ expiresAt }: Holder) => expiresAt !== null && expiresAt <= clock.now();
  return {
    // Revoking the last key must not open a server that runs, whatever address it listens on: only a restart can.
    isOpen: () => !cache.hasSeenKey() && environmentDigest === undefined && OM_OIDC_ISSUER === undefined,

    authenticate(secret) {
      const digest = digestOf(secret);
      const isEnvironmentKey = timingSafeEqual(digest, environmentDigest ?? NO_DIGEST);
      const key = cache.findKey(KEY_SECRET.exec(secret)?.[1] ?? '');
      const isKey = timingSafeEqual(digest, key?.digest ?? NO_DIGEST);
      if (isEnvironmentKey) return ENVIRONMENT;
      if (!isKey || key === undefined || isOver(key.holder)) return undefined;
      uses.note(key.holder.keyId);
      return key.holder;
    },

    isHolderValid(holder) {
      if (isOver(holder)) return false;
      if (!KEY_ID.test(holder.keyId)) return holder.tenantIds.every((id) => cache.findTenant(id) !== undefined);
      // A key never changes but for its tenants, which may be erased.
      const now = cache.findKey(holder.keyId)?.holder;
      return now !== undefined && holder.tenantIds.every((tenantId) => now.tenantIds.includes(tenantId));
    },
  };
}

/** Throws EngineError `not_found` for an unknown tenant. */
function requireTenant({ cache }: Context, tenantId: string): void {
  if (cache.findTenant(tenantId) === undefined) throw new EngineError('not_found', `no tenant ${describeId(tenantId)}`);
}

/** Quotes an id for a message and cuts it after 64 characters (UTF-16 code units), because ids come from clients. */
function describeId(id: string): string {
  return JSON.stringify(id.length > 64 ? `${id.slice(0, 64)}…` : id);
}
