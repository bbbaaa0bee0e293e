/** The interfaces of the two ends of a move: a data folder with SQLite files, and a PostgreSQL database. */

import type { ControlFile } from '../control/control-file.ts';
import type { Store } from '../store/open-store.ts';
import type { RowWriter } from '../store/postgres/moved-rows.ts';
import type { TenantPlace } from '../store/postgres/tenant-database.ts';
import type { UploadPart } from '../store/upload-parts.ts';

/** An open tenant at the source or the target of a move. */
export interface MovedTenant {
  /**
   * Path of the tenant's SQLite file. For a tenant in PostgreSQL, a path at which no file exists: it only names the
   * tenant.
   */
  readonly path: string;
  /** Database and name of a tenant in PostgreSQL; null for a tenant in a file. */
  readonly place: TenantPlace | null;
  /** Reads the tenant's rows, and writes those of a new tenant. */
  readonly rows: RowWriter;
  readonly store: Store;
  /** Reads an uploaded file that is still kept, in parts; yields nothing if there is no such file. */
  readUpload(name: string): Iterable<UploadPart>;
  writeUpload(part: UploadPart): void;
  /**
   * Writes the words of the tenant's memories anew, as an earlier version of Cairn may have indexed others; null for a
   * tenant in PostgreSQL. `onProgress` is called with the number of memories done so far.
   */
  readonly rewriteWords: ((onProgress: (done: number) => void) => void) | null;
  close(): void;
}

/** The source or the target of a move. */
interface MovePlace {
  /** Name for messages: the path of a file, or the address of a database without its password. */
  readonly name: string;
  close(): void;
}

export interface MoveSource extends MovePlace {
  readonly control: ControlFile;
  /** Opens a tenant to read it; returns undefined if the tenant has no data, because it was never used. */
  open(tenant: string): MovedTenant | undefined;
}

export interface MoveTarget extends MovePlace {
  /**
   * Checks that the target does not already hold data that the move would collide with.
   * @param tenant id of the only tenant to move; null for all tenants, which need an empty target
   * @throws EngineError `conflict`, which names what the target holds
   */
  requireRoomFor(tenant: string | null): void;
  /**
   * Whether an earlier move from the same source made all copies and only its last step, `finish`, has to be repeated.
   * Always false for a database, where that step is one commit.
   */
  readonly isComplete: boolean;
  /** Whether the target holds copies of an unfinished move from the same source. */
  readonly hasBegun: boolean;
  /** Removes the copies of an unfinished move from the same source. */
  reset(): void;
  /** Makes an empty tenant, which no service can use before `finish`. */
  make(tenant: string): MovedTenant;
  /**
   * Makes the copied tenants available to services, in one commit or behind a barrier that keeps services from
   * starting. If it was interrupted, it may be called again.
   * @param tenants ids of the tenants
   * @param work copies the control data into `control` and marks the source as moved; if it throws, no tenant becomes
   *   available. It is not called if `isComplete`
   */
  finish(tenants: readonly string[], work: (control: ControlFile) => void): void;
}
