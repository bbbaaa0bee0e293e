import type { Config } from '../config.ts';
import { createUploadFile, discardUpload, readInParts, readUploadPart, sweepUploads } from '../documents/uploads.ts';
import type { Tenant } from '../engine.ts';
import { EngineError, isEngineError } from '../errors.ts';
import type { DocumentReply, NewDocument } from '../types.ts';
import type { WriteInput } from '../writer/commands.ts';
import { quotaOf } from './quota-of.ts';
import { guardOf, screenHandedIn } from './tenant-privacy.ts';
import type { TenantOptions } from './tenant-options.ts';
import type { ArrivingBytes, TenantState } from './tenant-state.ts';

type UploadMethods = Pick<Tenant, 'createUpload' | 'addDocument' | 'replaceDocument'>;

/**
 * Makes the methods of a tenant that take in documents: `createUpload` makes a file for the bytes; `addDocument` and
 * `replaceDocument` then record the document that owns it. A file that no document owns afterwards is removed.
 * @param state has the sizes of the files that are arriving for this tenant; the methods add and remove entries
 */
export function createUploadMethods(options: TenantOptions, state: TenantState): UploadMethods {
  const { path, config, clock, writer, dispatcher, arrivingSpace } = options;
  const guard = guardOf(options);
  const areRows = config.OM_DATABASE_URL !== undefined;
  let isSwept = false;
  return {
    async createUpload(bytes, madeFrom) {
      refuseOverWaiting(config, await takenBeside(madeFrom?.name, state.arriving, options), bytes);
      arrivingSpace.require(path, bytes);
      if (areRows) isSwept ||= sweepBrokenOff(path, state.arriving, clock.now());
      const file = createUploadFile(path);
      state.arriving.set(file.name, bytes);
      arrivingSpace.add(file.name, bytes);
      return {
        ...file,
        createEncoder: () => arrivingSpace.createEncoder(path, file.name),
        readPart: (part) => readUploadPart(path, file.name, part),
        discard: () => discard(file.name),
      };
    },
    addDocument: (document, within = {}) =>
      handIn(document, (given) => writer.write(path, 'addDocument', { ...within, ...given })),
    replaceDocument: (id, document, bounds) =>
      handIn(document, (given) => writer.write(path, 'replaceDocument', { id, ...bounds, ...given })),
  };

  /**
   * Writes a document, and removes its uploaded file afterwards unless the document's reading needs the file, or may
   * need it since the answer to the commit was lost: a file that no document names is swept away later. In PostgreSQL
   * the file is stored as rows first, and always removed.
   */
  async function handIn(
    document: NewDocument,
    write: (given: Pick<WriteInput<'replaceDocument'>, 'document' | 'quota'>) => Promise<DocumentReply>,
  ): Promise<DocumentReply> {
    const { source } = document;
    let isNeeded = false;
    try {
      // The parts first: a crash in between leaves parts that no document names, which are swept away.
      if (areRows && source.kind === 'upload') {
        for (const part of readInParts(path, source.name)) await writer.write(path, 'putUploadPart', part);
      }
      const screened = guard.isOn() ? await screenHandedIn(guard, document) : document;
      const reply = await write({ document: screened, quota: quotaOf(options) }).catch((error: unknown) => {
        isNeeded = !isRefusal(error);
        throw error;
      });
      isNeeded = reply.outcome !== 'unchanged';
      if (isNeeded) dispatcher.dispatch(path, 'ingest');
      return reply;
    } finally {
      if (source.kind === 'upload') {
        arrivingSpace.remove(source.name);
        if (isNeeded && !areRows) state.arriving.delete(source.name);
        else await discard(source.name);
        // If this fails, the parts are swept away later, and the caller hears of the failure before it.
        if (areRows && !isNeeded) await writer.write(path, 'deleteUploadParts', { name: source.name }).catch(() => {});
      }
    }
  }

  async function discard(name: string): Promise<void> {
    arrivingSpace.remove(name);
    await discardUpload(path, name);
    state.arriving.delete(name);
  }
}

/**
 * Counts the bytes of files that wait to be read or are arriving, except for the arriving one with this name; undefined
 * excepts none.
 */
async function takenBeside(
  name: string | undefined,
  arriving: ArrivingBytes,
  { path, readers }: Pick<TenantOptions, 'path' | 'readers'>,
): Promise<number> {
  const before = [...arriving];
  const waiting = await readers.readFew(path, 'countWaitingBytes', {});
  // A file that has arrived meanwhile may not be among those that wait.
  const others = new Map([...before, ...arriving]);
  return [...others].reduce((sum, [other, most]) => (other === name ? sum : sum + most), waiting);
}

/** Whether an error of a write proves that nothing was stored. */
function isRefusal(error: unknown): boolean {
  return isEngineError(error) && error.code !== 'internal' && !error.mayBeWritten;
}

/**
 * Refuses a file of `bytes` bytes beside `taken` bytes of other files that arrive or wait to be read. A file that is
 * larger than OM_UPLOADS_MAX_MB is accepted if it is the only one. Throws EngineError `unavailable`.
 */
function refuseOverWaiting({ OM_UPLOADS_MAX_MB: maxMb }: Config, taken: number, bytes: number): void {
  if (taken === 0 || taken + bytes <= maxMb * 1024 * 1024) return;
  const message = 'documents that wait to be read fill OM_UPLOADS_MAX_MB';
  throw new EngineError('unavailable', message, { retryAfterMs: 5_000 });
}

/**
 * Removes files from the uploads folder of a tenant in PostgreSQL, where uploaded files are stored as rows: such files
 * belong to uploads that ended because their process was killed.
 * @returns true, by which the caller notes that it was done
 */
function sweepBrokenOff(path: string, arriving: TenantState['arriving'], now: number): true {
  sweepUploads(path, new Set(arriving.keys()), now);
  return true;
}
