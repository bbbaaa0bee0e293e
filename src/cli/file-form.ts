import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { CliError } from './cli-error.ts';

/** A form with one file, in the part `file`, which is given by its path. */
export interface FileForm {
  /** Values of the other fields by name. */
  readonly fields: Readonly<Record<string, string>>;
  /** Path of the file. */
  readonly file: string;
}

/** An encoded form: the headers and the body of its request. */
export interface EncodedForm {
  readonly headers: Readonly<Record<'content-type' | 'content-length', string>>;
  /**
   * Reads the body in pieces, from the start at each call.
   * @throws ChangedFileError if the file has changed since `encodeForm`; the system's error if it cannot be read
   */
  body(): AsyncGenerator<Uint8Array | string>;
}

/** Error of a form whose file has changed since its size was announced. */
export class ChangedFileError extends CliError {}

/**
 * Encodes a form as multipart/form-data. A `Response` of a `FormData` does not fit: it does not know its length, and if
 * the server answers before the whole form is sent, its stream throws where nothing can catch it, which ends the
 * process.
 * @throws the system's error if the file does not exist
 */
export function encodeForm({ fields, file }: FileForm): EncodedForm {
  const boundary = `cairn-${randomUUID()}`;
  const partOf = (disposition: string, ...rest: readonly string[]) =>
    [`--${boundary}`, `content-disposition: form-data; ${disposition}`, ...rest].join('\r\n');
  const start = [
    ...Object.entries(fields).map(([name, value]) => partOf(`name="${quoted(name)}"`, '', value, '')),
    partOf(`name="file"; filename="${quoted(path.basename(file))}"`, 'content-type: application/octet-stream', '', ''),
  ].join('');
  const end = `\r\n--${boundary}--\r\n`;
  const { size, mtimeMs } = fs.statSync(file);

  return {
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(Buffer.byteLength(start) + size + Buffer.byteLength(end)),
    },
    async *body() {
      yield start;
      let bytes = 0;
      for await (const chunk of fs.createReadStream(file) as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > size) break;
        yield chunk;
      }
      if (bytes !== size || fs.statSync(file).mtimeMs !== mtimeMs)
        throw new ChangedFileError('it changed while it was sent');
      yield end;
    },
  };
}

/** Encodes a name for a header as browsers do; control characters, which a header cannot contain, become spaces. */
function quoted(name: string): string {
  return name.replaceAll(/\p{Cc}/gu, ' ').replaceAll('"', '%22');
}
