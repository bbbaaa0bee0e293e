import { packZip } from './make-office.ts';

const NAMESPACES = [
  'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"',
  'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"',
  'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"',
  'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"',
  'xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"',
  'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"',
  'xmlns:v="urn:schemas-microsoft-com:vml"',
].join(' ');
const OFFICE_DOCUMENT = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument';

/** Makes the XML of a part of a Word document: its root element, with all namespaces declared. */
export const wordPart = (name: string, content: string) => `<w:${name} ${NAMESPACES}>${content}</w:${name}>`;

export const wordRelationships = (entries: string) =>
  `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${entries}</Relationships>`;

/**
 * Packs a Word document.
 * @param body content of the document's body, or a whole main part if it starts with an XML declaration
 */
export function packDocx(body: string, parts: Readonly<Record<string, string>> = {}): Promise<Buffer> {
  return packZip({
    '[Content_Types].xml': '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
    '_rels/.rels': wordRelationships(`<Relationship Id="rId1" Type="${OFFICE_DOCUMENT}" Target="word/document.xml"/>`),
    'word/document.xml': body.startsWith('<?xml') ? body : wordPart('document', `<w:body>${body}</w:body>`),
    ...parts,
  });
}
