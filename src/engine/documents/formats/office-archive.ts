import { posix } from 'node:path';
import { DocumentError } from '../document-error.ts';
import { childrenNamed, parseXml, type XmlElement } from '../xml.ts';
import { openZip, type ZipArchive } from '../zip.ts';

/**
 * Opens an Office file (docx, pptx, xlsx) as a zip archive.
 * @throws DocumentError `encrypted_document` for a file with a password, which is not a zip archive but an OLE
 *   container; `unsupported_document` for the binary formats of older versions; `corrupt_document`,
 *   `document_too_large` and `document_too_complex` like `openZip`
 */
export async function openOfficeArchive(bytes: Uint8Array): Promise<ZipArchive> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!buffer.subarray(0, OLE.length).equals(OLE)) return openZip(bytes);
  if (buffer.includes('EncryptedPackage', 0, 'utf16le')) {
    throw new DocumentError('encrypted_document', 'The document is protected by a password: save it without one.');
  }
  throw new DocumentError(
    'unsupported_document',
    'The file is in a format of older Office versions: convert it to docx, xlsx, pptx or pdf.',
  );
}

const OLE = Buffer.from('d0cf11e0a1b11ae1', 'hex');

/**
 * Reads the XML part at a path in an archive and returns its root element; undefined if there is no such part.
 * @throws DocumentError `corrupt_document` if it is not well-formed, `document_too_complex` beyond the limits, or
 *    `unsupported_encoding`
 */
export async function readPart(zip: ZipArchive, name: string): Promise<XmlElement | undefined> {
  const bytes = await zip.read(name);
  return bytes && parseXml(bytes);
}

/** A reference from a part to another part of the archive. */
export interface Relationship {
  /** Id with which elements of the referring part refer to this relationship; '' for none. */
  readonly id: string;
  /** Last word of the relationship's type, such as `slide` or `notesSlide`. */
  readonly type: string;
  /** Path of the other part in the archive. The part itself may be missing. */
  readonly target: string;
}

/**
 * Reads the relationships (references to other parts) of the part at a path ('' for the archive itself), except those
 * to something outside the archive. The list is empty for a part without relationships.
 */
export async function readRelationships(zip: ZipArchive, part: string): Promise<Relationship[]> {
  const folder = posix.dirname(part);
  const root = await readPart(zip, posix.join(folder, '_rels', `${posix.basename(part)}.rels`));
  return (root === undefined ? [] : childrenNamed(root, 'Relationship'))
    .filter(({ attributes }) => attributes.get('TargetMode') !== 'External')
    .map(({ attributes }) => {
      const target = attributes.get('Target') ?? '';
      return {
        id: attributes.get('Id') ?? '',
        type: (attributes.get('Type') ?? '').split('/').at(-1)!,
        target: target.startsWith('/') ? posix.normalize(target.slice(1)) : posix.join(folder, target),
      };
    });
}

/**
 * Returns the relationship id among an element's attributes: the value of the attribute whose name ends with `:id`,
 * with any prefix; '' for none. (The attribute `id` without a prefix is the element's own number.)
 */
export function relationshipId(attributes: ReadonlyMap<string, string>): string {
  return [...attributes].find(([name]) => name.endsWith(':id'))?.[1] ?? '';
}

/**
 * Returns the path of the part with the document's content, wherever its producer put it in the archive.
 * @throws DocumentError `corrupt_document` if there is none
 */
export async function findMainPart(zip: ZipArchive): Promise<string> {
  const main = (await readRelationships(zip, '')).find(({ type }) => type === 'officeDocument');
  if (main === undefined || !zip.names.includes(main.target)) throw damaged();
  return main.target;
}

/** Creates the error `corrupt_document` for a document with missing or damaged parts. */
export function damaged(): DocumentError {
  return new DocumentError(
    'corrupt_document',
    'The document is damaged or incomplete: parts that it needs are missing.',
  );
}
