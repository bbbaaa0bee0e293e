import { CairnError } from './errors.ts';
import type { Operation } from './operation.ts';

/** All fields of a request in one object. */
export type Input = Readonly<Record<string, unknown>>;

interface Request {
  readonly method: string;
  /** Path and query string of the request, without the server's address. */
  readonly target: string;
  readonly body?: string | FormData;
}

/**
 * Places the fields of a request in its path, its query string and its body. Fields that are undefined are left out,
 * and so are nulls of the query string. A `Blob` in the field `file` makes the body a form; otherwise it is JSON.
 * @throws CairnError `invalid` if a field of the path is missing, empty, `.` or `..`
 */
export function placeFields({ at, query }: Operation, input: Input): Request {
  const [method, pattern] = at.split(' ') as [string, string];
  const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
  const path = pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest.get(name);
    rest.delete(name);
    return segmentOf(name, value);
  });
  const parameters = new URLSearchParams();
  const fields: Record<string, unknown> = {};
  for (const [name, value] of rest) {
    if (query !== undefined && !query.includes(name)) fields[name] = value;
    else
      for (const one of Array.isArray(value) ? value : [value]) if (one !== null) parameters.append(name, textOf(one));
  }
  const target = parameters.size === 0 ? path : `${path}?${parameters.toString()}`;
  if (query === undefined || (method === 'DELETE' && Object.keys(fields).length === 0)) return { method, target };
  return { method, target, body: fields.file instanceof Blob ? formOf(fields) : JSON.stringify(fields) };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * Encodes a value as a segment of a path. A segment that is empty, `.` or `..` would change the path, and so the
 * request.
 * @throws CairnError `invalid` for such a segment, and for a value that is neither a string nor a number
 */
function segmentOf(name: string, value: unknown): string {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  if (['', '.', '..'].includes(text))
    throw new CairnError('invalid', `${name}: expected a text, which cannot be empty`);
  return encodeURIComponent(text);
}

/**
 * Makes a multipart form. The file comes last, since the server reads no field after the file before it has read the
 * file. Fields that are null are left out.
 */
function formOf({ file, ...fields }: Record<string, unknown>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== null) form.append(name, typeof value === 'string' ? value : JSON.stringify(value));
  }
  const { name = 'file' } = file as File;
  form.append('file', file, typeof fields.file_name === 'string' ? fields.file_name : name);
  return form;
}
