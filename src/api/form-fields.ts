import { EngineError } from '../engine/index.ts';

/** Fields of a form by name; a field that was sent several times is a list. */
export type FormFields = Record<string, string | string[]>;

const MAX_FIELD_NAME_CHARACTERS = 64;
/** Longest field of a form, in bytes. Metadata is the longest, with up to 16 KiB. */
export const MAX_FIELD_BYTES = 16 * 1024;

/** A field as the parser of the form read it. */
interface ParsedField {
  readonly name: string | undefined;
  readonly value: string | undefined;
  /** Whether the parser cut the value, as it is longer than a field may be. */
  readonly isCut: boolean;
}

/**
 * Adds a field to the fields of a form.
 * @throws EngineError `invalid` for a field without a name or with too long a one, for the part "file" without a file
 *   name, and for a value that is too long, is not UTF-8, or holds the character U+FFFD
 */
export function addField(fields: FormFields, { name, value, isCut }: ParsedField): void {
  if (name === undefined || name === '') throw malformed('has a part without a name');
  if (name.length > MAX_FIELD_NAME_CHARACTERS)
    throw malformed(`has a field name over ${MAX_FIELD_NAME_CHARACTERS} characters`);
  if (name === 'file') throw malformed('has a part "file" that is no file: its content-disposition needs a filename');
  if (isCut) throw malformed(`has a field over ${MAX_FIELD_BYTES} bytes`);
  // The parser puts this character where bytes are not UTF-8; it would be stored in place of the text.
  if (value === undefined || value.includes('\ufffd')) throw malformed('has a field that is not UTF-8');
  const before = fields[name];
  fields[name] = before === undefined ? value : [before, value].flat();
}

/** Makes the error for a malformed form. @param problem ends a sentence that begins with "the form" */
export const malformed = (problem: string) => new EngineError('invalid', `the form ${problem}`);
