import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { CliError } from './cli-error.ts';

/** A form with one file, which is named by its path and stands in the part `file`. */
export interface FileForm {
  readonly fields: Readonly<Record<string, string>>;
  readonly file: string;
}

/** A form as it travels. */
export interface EncodedForm {
  readonly headers: Readonly<Record<'content-type' | 'content-length', string>>;
  /** Reads the file from the disk anew at each call, a piece at a time; throws ChangedFileError, or the system's error. */
  body(): AsyncGenerator<Uint8Array | string>;
}

/** The file is not the one any more whose size was announced. */
export class ChangedFileError extends CliError {}

/**
 * Encodes a form as multipart/form-data. Not a `Response` of a `FormData`: when the server answers before all is sent and the sending is
 * stopped, the stream in it throws where nobody can catch it, which ends the process; and it does not say how long it is.
 * @throws the system's error where there is no such file
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

/** As browsers write names into a header, which has no way to hold control characters. */
function quoted(name: string): string {
  return name.replaceAll(/\p{Cc}/gu, ' ').replaceAll('"', '%22');
}
