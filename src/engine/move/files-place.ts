/** A data folder, from which or into which tenants are moved. */

import fs from 'node:fs';
import path from 'node:path';
import { rewriteText } from '../admin/rebuild-text.ts';
import type { Config } from '../config.ts';
import { openControlFile, type ControlFile, type SqliteControlFile } from '../control/control-file.ts';
import { listPresentTenants } from '../control/moved-control.ts';
import { requireWholeFolder, stagingFolder, tenantFile } from '../control/tenant-paths.ts';
import { hasUpload, readInParts, uploadsFolder, writeUploadPart } from '../documents/uploads.ts';
import { EngineError } from '../errors.ts';
import { openStore, type SqliteStore } from '../store/open-store.ts';
import { writeFileRows } from '../store/postgres/moved-file.ts';
import type { MovedTenant, MoveSource, MoveTarget } from './places.ts';

export interface FilesSource extends MoveSource {
  readonly control: SqliteControlFile;
  open(tenant: string): MovedFile | undefined;
}

/** A tenant that lives in a SQLite file. */
interface MovedFile extends MovedTenant {
  readonly store: SqliteStore;
}

/**
 * Opens a data folder from which tenants are moved.
 * @throws EngineError `not_found` if there is no data folder; `conflict` if an unfinished move left only a part of the
 *   data there; the errors of `openControlFile`
 */
export function openFilesSource({ paths }: Config): FilesSource {
  if (!fs.existsSync(paths.control)) {
    throw new EngineError('not_found', `there is no data folder at ${paths.defaultTenant}: does OM_DB_PATH name it?`);
  }
  requireWholeFolder(paths);
  const control = openControlFile(paths.control, null);
  return {
    name: paths.defaultTenant,
    control,
    open(tenant) {
      const file = tenantFile(paths, tenant);
      return fs.existsSync(file) ? openFile(file, openStore(file, { role: 'reader' })) : undefined;
    },
    close: () => control.close(),
  };
}

/** Name of a file in the staging folder. Its text is the `sourceKey` of the move that made the folder. */
const SOURCE = 'source';
/**
 * Name of a file in the staging folder. If it exists, all copies are complete and only have to be renamed into place.
 */
const COMPLETE = 'complete';

/**
 * Opens a data folder into which tenants are moved. Their files are made in a staging folder beside it and renamed when
 * all of them are verified. No service starts while the staging folder exists.
 * @param sourceKey hash of the source's name, which tells moves from different sources apart
 * @throws EngineError `conflict` if an unfinished move from another source left a staging folder
 */
export function openFilesTarget({ paths }: Config, sourceKey: string): MoveTarget {
  const staging = stagingFolder(paths);
  const staged = {
    ...paths,
    defaultTenant: path.join(staging, path.basename(paths.defaultTenant)),
    tenants: path.join(staging, path.basename(paths.tenants)),
  };
  const begunBy = readIfThere(path.join(staging, SOURCE));
  if (begunBy !== undefined && begunBy !== sourceKey) {
    throw new EngineError('conflict', `a move from another database into ${staging} is not complete: end it first`);
  }
  return {
    name: paths.defaultTenant,
    requireRoomFor(tenant) {
      const taken = tenant === null ? paths.control : tenantFile(paths, tenant);
      const places = tenant === null ? [paths.defaultTenant, paths.tenants] : [];
      const found = [taken, ...places].find((file) => fs.existsSync(file));
      if (found === undefined && !(tenant !== null && hasTenant(paths, tenant))) return;
      throw new EngineError(
        'conflict',
        `${found ?? paths.control} already holds ${tenant === null ? 'data' : `tenant ${tenant}`}: ` +
          'give another path, or move it away',
      );
    },
    get isComplete() {
      return fs.existsSync(path.join(staging, COMPLETE));
    },
    get hasBegun() {
      return fs.existsSync(staging);
    },
    reset: () => fs.rmSync(staging, { recursive: true, force: true }),
    make(tenant) {
      writeSynced(path.join(staging, SOURCE), sourceKey);
      const file = tenantFile(staged, tenant);
      return openFile(file, openStore(file, { role: 'acknowledger', create: true, key: null }));
    },
    finish(tenants, work) {
      if (!this.isComplete) {
        const control = openControlFile(paths.control, null);
        try {
          control.write(() => work(control));
        } finally {
          control.close();
        }
        writeSynced(path.join(staging, COMPLETE), '');
      }
      for (const tenant of tenants) place(tenantFile(staged, tenant), tenantFile(paths, tenant));
      fs.rmSync(staging, { recursive: true, force: true });
      syncFolder(path.dirname(staging));
    },
    close() {},
  };
}

function hasTenant(paths: Config['paths'], tenant: string): boolean {
  if (!fs.existsSync(paths.control)) return false;
  const control: ControlFile = openControlFile(paths.control, null);
  try {
    return listPresentTenants(control).includes(tenant);
  } finally {
    control.close();
  }
}

function openFile(file: string, store: SqliteStore): MovedFile {
  return {
    path: file,
    place: null,
    rows: writeFileRows(store),
    store,
    readUpload: (name) => (hasUpload(file, name) ? readInParts(file, name) : []),
    writeUpload: (part) => writeUploadPart(file, part),
    rewriteWords(onProgress) {
      const writable = openStore(file, { role: 'worker' });
      try {
        rewriteText(writable, onProgress);
      } finally {
        writable.close();
      }
    },
    close: () => store.close(),
  };
}

/**
 * Renames a tenant's database file and its folder of uploads to their final paths. It skips what was renamed already.
 */
function place(from: string, to: string): void {
  for (const [a, b] of [
    [uploadsFolder(from), uploadsFolder(to)],
    [from, to],
  ] as const) {
    if (!fs.existsSync(a)) continue;
    fs.mkdirSync(path.dirname(b), { recursive: true, mode: 0o700 });
    fs.renameSync(a, b);
    syncFolder(path.dirname(b));
  }
}

function writeSynced(file: string, text: string): void {
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  fs.writeFileSync(file, text, { mode: 0o600, flush: true });
  syncFolder(path.dirname(file));
}

function syncFolder(folder: string): void {
  const opened = fs.openSync(folder, 'r');
  try {
    fs.fsyncSync(opened);
  } finally {
    fs.closeSync(opened);
  }
}

const readIfThere = (file: string): string | undefined =>
  fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : undefined;
