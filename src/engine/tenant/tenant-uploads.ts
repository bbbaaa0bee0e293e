import { createUploadFile, removeUpload, requireRoomToTakeIn } from '../documents/uploads.ts';
import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { waitingBytes } from '../store/uploads.ts';
import type { DocumentReply, NewDocument } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

type UploadMethods = Pick<Tenant, 'createUpload' | 'addDocument' | 'replaceDocument'>;

/** Makes the methods by which a tenant takes documents in: first the file, then the document that owns it. */
export function createUploadMethods({ path, config, writer, dispatcher, open }: TenantOptions): UploadMethods {
  /**
   * Size in bytes that each arriving file may reach, by its name in the uploads folder. The next file must find room
   * beside all of them.
   */
  const arriving = new Map<string, number>();

  return {
    async createUpload(bytes) {
      const taken = waitingBytes(open().store) + [...arriving.values()].reduce((sum, most) => sum + most, 0);
      // A file that is larger than the bound is accepted if it is the only one.
      if (taken > 0 && taken + bytes > config.OM_UPLOADS_MAX_MB * 1024 * 1024) {
        throw new EngineError('unavailable', 'documents that wait to be read fill OM_UPLOADS_MAX_MB', {
          retryAfterMs: 5_000,
        });
      }
      requireRoomToTakeIn(path, bytes);
      const file = createUploadFile(path);
      arriving.set(file.name, bytes);
      return { ...file, discard: () => discard(file.name) };
    },
    addDocument: (document) => handIn(document, () => writer.write(path, 'addDocument', { document })),
    replaceDocument: (id, document) => handIn(document, () => writer.write(path, 'replaceDocument', { id, document })),
  };

  /** Writes a document, and removes its uploaded file afterwards unless a generation owns the file now. */
  async function handIn(document: NewDocument, write: () => Promise<DocumentReply>): Promise<DocumentReply> {
    let isOwned = false;
    try {
      const reply = await write();
      isOwned = reply.outcome !== 'unchanged';
      if (isOwned) dispatcher.dispatch(path, 'ingest');
      return reply;
    } finally {
      const { source } = document;
      if (source.kind === 'upload' && isOwned) arriving.delete(source.name);
      else if (source.kind === 'upload') discard(source.name);
    }
  }

  function discard(name: string): void {
    removeUpload(path, name);
    arriving.delete(name);
  }
}
