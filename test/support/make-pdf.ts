import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';

/** Text at a position of a page of 612 × 792 points, whose origin is at the bottom left. */
export interface PlacedText {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly size?: number;
  readonly font?: keyof typeof FONTS | 'mapped';
  /** PDF's text rendering mode; 3 is invisible. */
  readonly mode?: number;
}

export interface PdfPageSource {
  readonly texts?: readonly PlacedText[];
  /** Drawing operators that come before the texts. */
  readonly operators?: string;
  /** Bodies of annotation dictionaries. */
  readonly annotations?: readonly string[];
  /** A text that replaces the page's own dictionary, to damage the page. */
  readonly damagedBy?: string;
}

/** A drawing that is stored once and drawn wherever its name is used (a form XObject). */
interface PdfForm {
  readonly texts?: readonly PlacedText[];
  /** Drawing operators that come before the texts. `/name Do` draws the form or image of that name. */
  readonly operators?: string;
}

export interface PdfSource {
  readonly pages: readonly PdfPageSource[];
  /** Forms by name. Pages and other forms can draw them. */
  readonly forms?: Readonly<Record<string, PdfForm>>;
  /** Entries of the information dictionary, in PDF syntax. */
  readonly info?: string;
  /** Entries of the catalog, in PDF syntax. */
  readonly catalog?: string;
  readonly isCompressed?: boolean;
  readonly isXrefDamaged?: boolean;
  /**
   * `user`: a password is needed to open the file. `owner`: everybody can open it, but its permissions are restricted.
   */
  readonly password?: 'user' | 'owner';
  /** Entries of the trailer's page tree, such as a false count. */
  readonly pageCount?: number;
}

const FONTS = { sans: 'Helvetica', bold: 'Helvetica-Bold', mono: 'Courier', serif: 'Times-Roman' } as const;

/** Characters that the glyphs of the font `mapped` stand for. One of them is a ligature of two letters. */
const MAPPED = { S: 'س', L: 'لا', M: 'م', N: '日', H: '本' } as const;

/**
 * Writes a small PDF, so that a test shows the content of the file that it reads. All text is Latin, except in the font
 * `mapped`.
 */
export function makePdf(source: PdfSource): Uint8Array {
  const objects: Buffer[] = [];
  const add = (body: string | Buffer) => objects.push(Buffer.isBuffer(body) ? body : Buffer.from(body, 'latin1'));
  const reserve = () => add('');
  const key = source.password === undefined ? undefined : encryptionKey(source.password);

  const catalog = reserve();
  const tree = reserve();
  const info = add(`<< ${source.info ?? ''} >>`);
  const unicode = add(stream('', Buffer.from(toUnicode(MAPPED))));
  const fonts = [...Object.entries(FONTS), ['mapped', 'Helvetica']]
    .map(([name, font]) => {
      const mapping = name === 'mapped' ? `/ToUnicode ${unicode} 0 R` : '';
      return `/${name} ${add(`<< /Type /Font /Subtype /Type1 /BaseFont /${font} /Encoding /WinAnsiEncoding ${mapping} >>`)} 0 R`;
    })
    .join(' ');
  const image = add(
    stream(
      '/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8',
      Buffer.from([0]),
    ),
  );
  const forms = Object.values(source.forms ?? {}).map((form) => ({ form, number: reserve() }));
  const drawings = Object.keys(source.forms ?? {}).map((name, index) => `/${name} ${forms[index]!.number} 0 R`);
  const resources = `/Resources << /Font << ${fonts} >> /XObject << /scan ${image} 0 R ${drawings.join(' ')} >> >>`;
  for (const { form, number } of forms) {
    const entries = `/Type /XObject /Subtype /Form /BBox [0 0 612 792] ${resources}`;
    objects[number - 1] = stream(entries, Buffer.from(drawingOf(form), 'latin1'));
  }
  const pages = source.pages.map((page) => {
    if (page.damagedBy !== undefined) return add(page.damagedBy);
    const annotations = (page.annotations ?? []).map((body) => `${add(`<< /Type /Annot ${body} >>`)} 0 R`);
    const drawing = Buffer.from(drawingOf(page), 'latin1');
    const number = objects.length + 1;
    const content = source.isCompressed === true ? deflateSync(drawing) : drawing;
    add(
      stream(
        source.isCompressed === true ? '/Filter /FlateDecode' : '',
        key === undefined ? content : rc4(objectKey(key, number), content),
      ),
    );
    return add(
      `<< /Type /Page /Parent ${tree} 0 R /MediaBox [0 0 612 792] /Contents ${number} 0 R ` +
        `${resources} /Annots [${annotations.join(' ')}] >>`,
    );
  });
  const kids = pages.map((page) => `${page} 0 R`).join(' ');
  objects[tree - 1] = Buffer.from(`<< /Type /Pages /Kids [${kids}] /Count ${source.pageCount ?? pages.length} >>`);
  objects[catalog - 1] = Buffer.from(`<< /Type /Catalog /Pages ${tree} 0 R ${source.catalog ?? ''} >>`, 'latin1');

  const encrypt =
    key === undefined ? '' : `/Encrypt ${add(encryptionDictionary(key, source.password!))} 0 R /ID [<${ID}> <${ID}>]`;
  return joinFile(objects, `/Root ${catalog} 0 R /Info ${info} 0 R ${encrypt}`, source.isXrefDamaged === true);
}

function toUnicode(mapping: Readonly<Record<string, string>>): string {
  const rows = Object.entries(mapping).map(
    ([code, text]) => `<${code.charCodeAt(0).toString(16)}> <${Buffer.from(text, 'utf16le').swap16().toString('hex')}>`,
  );
  return [
    '/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Mapped def',
    '1 begincodespacerange <00> <ff> endcodespacerange',
    `${rows.length} beginbfchar ${rows.join(' ')} endbfchar`,
    'endcmap end end',
  ].join('\n');
}

function joinFile(objects: readonly Buffer[], trailer: string, isXrefDamaged: boolean): Uint8Array {
  const parts: Buffer[] = [Buffer.from('%PDF-1.4\n%\xe2\xe3\xcf\xd3\n', 'latin1')];
  let length = parts[0]!.length;
  const offsets = objects.map((body, index) => {
    const offset = length;
    const part = Buffer.concat([Buffer.from(`${index + 1} 0 obj\n`), body, Buffer.from('\nendobj\n')]);
    parts.push(part);
    length += part.length;
    return offset;
  });
  const rows = offsets.map((offset) => `${String(offset + (isXrefDamaged ? 7 : 0)).padStart(10, '0')} 00000 n \n`);
  const xref = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows.join('')}`;
  const end = `trailer\n<< /Size ${objects.length + 1} ${trailer} >>\nstartxref\n${isXrefDamaged ? 1 : length}\n%%EOF\n`;
  return new Uint8Array(Buffer.concat([...parts, Buffer.from(xref + end)]));
}

function stream(entries: string, data: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`<< ${entries} /Length ${data.length} >>\nstream\n`),
    data,
    Buffer.from('\nendstream'),
  ]);
}

function drawingOf({ operators = '', texts = [] }: PdfForm): string {
  return `${operators}\n${texts.map(drawText).join('\n')}\n`;
}

function drawText({ text, x, y, size = 10, font = 'sans', mode = 0 }: PlacedText): string {
  return `BT /${font} ${size} Tf ${mode} Tr 1 0 0 1 ${x} ${y} Tm (${text.replace(/[\\()]/g, '\\$&')}) Tj ET`;
}

/**
 * Returns the lines of a paragraph as texts at positions one below the other.
 * @param leading distance between two lines, in points
 */
export function drawLines(lines: readonly string[], at: Omit<PlacedText, 'text'>, leading = 12): PlacedText[] {
  return lines.map((text, index) => ({ ...at, text, y: at.y - index * leading }));
}

// ── Encryption: revision 2 of the standard handler, RC4 with 40 bits ───────────────────────────────────────────────

const ID = '00112233445566778899aabbccddeeff';
const PADDING = Buffer.from('28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a', 'hex');
const OWNER_ENTRY = Buffer.alloc(32, 0x5a);
const PERMISSIONS = -44;

function encryptionKey(password: 'user' | 'owner'): Buffer {
  const user = password === 'user' ? Buffer.from('not the empty one') : Buffer.alloc(0);
  const permissions = Buffer.alloc(4);
  permissions.writeInt32LE(PERMISSIONS);
  const padded = Buffer.concat([user, PADDING]).subarray(0, 32);
  return md5(Buffer.concat([padded, OWNER_ENTRY, permissions, Buffer.from(ID, 'hex')])).subarray(0, 5);
}

function encryptionDictionary(key: Buffer, password: 'user' | 'owner'): string {
  const user = rc4(key, PADDING).toString('hex');
  const label = password === 'user' ? 'opens with a password' : 'opens without one';
  return `<< /Filter /Standard /V 1 /R 2 /O <${OWNER_ENTRY.toString('hex')}> /U <${user}> /P ${PERMISSIONS} >> % ${label}`;
}

function objectKey(key: Buffer, object: number): Buffer {
  const salt = Buffer.from([object & 255, (object >> 8) & 255, (object >> 16) & 255, 0, 0]);
  return md5(Buffer.concat([key, salt])).subarray(0, 10);
}

function md5(data: Buffer): Buffer {
  return createHash('md5').update(data).digest();
}

/** Encrypts with RC4. It is written by hand, since OpenSSL 3 no longer offers RC4. */
function rc4(key: Buffer, data: Buffer): Buffer {
  const state = Uint8Array.from({ length: 256 }, (_, index) => index);
  const swap = (a: number, b: number) => ([state[a], state[b]] = [state[b]!, state[a]!]);
  for (let i = 0, j = 0; i < 256; i += 1) {
    j = (j + state[i]! + key[i % key.length]!) & 255;
    swap(i, j);
  }
  let i = 0;
  let j = 0;
  return Buffer.from(data).map((byte) => {
    i = (i + 1) & 255;
    j = (j + state[i]!) & 255;
    swap(i, j);
    return byte ^ state[(state[i]! + state[j]!) & 255]!;
  }) as Buffer;
}
