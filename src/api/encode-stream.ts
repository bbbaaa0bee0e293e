import { Transform } from 'node:stream';
import type { Upload } from '../engine/index.ts';

/**
 * Makes a stream that turns the bytes of an uploaded file into those that are stored of it. The stream fails with what
 * the upload's encoder throws: EngineError `storage_full` once the disk has no more space for the file.
 */
export function createEncodeStream(upload: Upload): Transform {
  const encoder = upload.createEncoder();
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      let stored: Uint8Array;
      try {
        stored = encoder.update(chunk);
      } catch (error) {
        return done(error as Error);
      }
      done(null, stored);
    },
    flush: (done) => done(null, encoder.end()),
  });
}
