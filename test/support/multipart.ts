/** A part of a multipart form as it is sent, in which a test may make anything wrong. */
export interface Part {
  /** Lines of the part's header. By default there is a content-disposition made of `name` and `fileName`. */
  readonly headers?: readonly string[];
  readonly name?: string;
  readonly fileName?: string;
  readonly content?: string | Uint8Array;
}

export const BOUNDARY = '----test-boundary';
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

/** Writes a multipart/form-data body by hand, so that a test determines every byte. */
export function multipart(parts: readonly Part[], { end = `--${BOUNDARY}--\r\n` }: { end?: string } = {}): Buffer {
  const pieces = parts.flatMap(({ headers, name = 'file', fileName, content = 'some text' }) => {
    const disposition = `content-disposition: form-data; name="${name}"${fileName === undefined ? '' : `; filename="${fileName}"`}`;
    return [`--${BOUNDARY}\r\n${(headers ?? [disposition]).join('\r\n')}\r\n\r\n`, content, '\r\n'];
  });
  return Buffer.concat([...pieces, end].map((piece) => Buffer.from(piece as string)));
}
