import { posix } from 'node:path';
import { DocumentError } from '../document-error.ts';
import { childrenNamed, parseXml, type XmlElement } from '../xml.ts';
import { openZip, type ZipArchive } from '../zip.ts';

/**
 * A file of Office as its archive.
 * @throws DocumentError `encrypted_document` for one with a password, which is no zip archive but an OLE container that holds one;
 *   `unsupported_document` for the binary formats of older versions; else as `openZip`
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

/** The root element of a part; undefined where the archive has no such part. */
export async function readPart(zip: ZipArchive, name: string): Promise<XmlElement | undefined> {
  const bytes = await zip.read(name);
  return bytes && parseXml(bytes);
}

/** What a part points to within its archive. */
export interface Relationship {
  readonly id: string;
  /** The last word of its type, such as `slide` or `notesSlide`. */
  readonly type: string;
  /** The name of the part. */
  readonly target: string;
}

/** Relationships of a part ('' for the archive itself), but for those that lead out of the archive. */
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

/** The part that holds the document, wherever its producer put it. @throws DocumentError `corrupt_document` for none */
export async function findMainPart(zip: ZipArchive): Promise<string> {
  const main = (await readRelationships(zip, '')).find(({ type }) => type === 'officeDocument');
  if (main === undefined || !zip.names.includes(main.target)) throw damaged();
  return main.target;
}

export function damaged(): DocumentError {
  return new DocumentError(
    'corrupt_document',
    'The document is damaged or incomplete: parts that it needs are missing.',
  );
}
