/** What a move needs of the two places between which it moves: a data folder, and a database of PostgreSQL. */

import type { ControlFile } from '../control/control-file.ts';
import type { Store } from '../store/open-store.ts';
import type { RowWriter } from '../store/postgres/moved-rows.ts';
import type { TenantPlace } from '../store/postgres/tenant-database.ts';
import type { UploadPart } from '../store/upload-parts.ts';

/** A tenant at one of the two places. */
export interface MovedTenant {
  /** Path that its file has, or would have. */
  readonly path: string;
  /** Where in a database it is; null for a tenant in a file. */
  readonly place: TenantPlace | null;
  /** Its rows; only those of a new tenant are written. */
  readonly rows: RowWriter;
  readonly store: Store;
  /** Reads a file of a document that waits, in parts; none if the file is missing. */
  readUpload(name: string): Iterable<UploadPart>;
  writeUpload(part: UploadPart): void;
  close(): void;
}

/** Where the data is, before a move and after it. */
interface MovePlace {
  /** The place as people are told of it: the path of a file, or the address of a database without its password. */
  readonly name: string;
  close(): void;
}

export interface MoveSource extends MovePlace {
  readonly control: ControlFile;
  /** Opens a tenant to read it; undefined for one that was never used. */
  open(tenant: string): MovedTenant | undefined;
}

export interface MoveTarget extends MovePlace {
  /**
   * Checks that the place can take tenants in.
   * @param tenant the one that is moved; null for all, which need an empty place
   * @throws EngineError `conflict` with a sentence that says what is there
   */
  requireRoomFor(tenant: string | null): void;
  /** Whether an earlier move from the same source has only to be opened: its source has been told, or is kept. */
  readonly isComplete: boolean;
  /** Whether there is anything of an earlier move from the same source. */
  readonly hasBegun: boolean;
  /** Removes what an earlier move from the same source left. */
  reset(): void;
  /** Makes a tenant that no service can use before `finish`. */
  make(tenant: string): MovedTenant;
  /**
   * Opens the tenants to services: in one commit, or so that no service starts there before it is done. It may be
   * called again after it was broken off.
   * @param work copies the control data, tells the source, and throws if all is to be left as it is
   */
  finish(tenants: readonly string[], work: (control: ControlFile) => void): void;
}
