import type { Encoder } from '../types.ts';
import { createUploadEncoder, requireRoomToGoOn, requireRoomToTakeIn } from './uploads.ts';

/**
 * Number of bytes of an uploaded file that may be written between two checks of the free disk space: other processes
 * take in files on the same disk, and everything else that is stored needs space too.
 */
const CHECKED_BYTES = 1024 * 1024;

/**
 * Disk space that uploaded files of all tenants still take while they arrive in this process. `tenantPath` is the path
 * of a tenant's database file, `name` that of an uploaded file in the tenant's folder, which no other file has.
 */
export interface ArrivingSpace {
  /**
   * Checks that a file of at most `bytes` bytes can be taken in beside those that are arriving. Throws EngineError
   * `storage_full`. It reserves nothing: call `add` in the same turn.
   */
  require(tenantPath: string, bytes: number): void;
  /** Begins to count a file that is going to write at most `bytes` bytes. */
  add(name: string, bytes: number): void;
  /**
   * Makes the encoder of a file that was added. What it encodes counts as written, and after each MiB its `update`
   * throws EngineError `storage_full` if the disk has no more space for all files that are arriving. The file then
   * counts no more, so that the others may go on.
   */
  createEncoder(tenantPath: string, name: string): Encoder;
  /** Stops counting the bytes that a file still writes, because it is complete or given up. */
  remove(name: string): void;
}

export function createArrivingSpace(): ArrivingSpace {
  /** Bytes that each file still writes, by its name. */
  const unwritten = new Map<string, number>();
  const expected = () => [...unwritten.values()].reduce((sum, bytes) => sum + bytes, 0);
  const check = (tenantPath: string, name: string) => {
    const bytes = expected();
    try {
      requireRoomToGoOn(tenantPath, bytes);
    } catch (error) {
      unwritten.delete(name);
      throw error;
    }
  };
  return {
    require: (tenantPath, bytes) => requireRoomToTakeIn(tenantPath, { bytes, expected: expected() }),
    add: (name, bytes) => void unwritten.set(name, bytes),
    createEncoder(tenantPath, name) {
      const encoder = createUploadEncoder(tenantPath, name);
      let unchecked = 0;
      return {
        update(bytes) {
          const left = unwritten.get(name);
          if (left !== undefined) unwritten.set(name, Math.max(0, left - bytes.length));
          unchecked += bytes.length;
          if (unchecked >= CHECKED_BYTES) {
            unchecked = 0;
            check(tenantPath, name);
          }
          return encoder.update(bytes);
        },
        end() {
          unwritten.delete(name);
          return encoder.end();
        },
      };
    },
    remove: (name) => void unwritten.delete(name),
  };
}
