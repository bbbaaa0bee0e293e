/** Which streams of a PDF file its pages draw: the values of the key `Contents`, without parsing all objects. */

/** A part of a PDF file that holds objects. */
export interface ObjectsPart {
  readonly bytes: Buffer;
  /** In an object stream: the number of its objects, and the position of the first, after the positions of all. */
  readonly table?: { readonly count: number; readonly first: number };
}

/** Matches the name `Contents`, or `G`, whose value is the drawing that masks another one. */
const KEY = /\/(Contents|G)(?![^\s\0()<>[\]{}/%])[\s\0]*/g;
/** Matches the beginning of a string, which is how a note has its text, or of a dictionary. */
const STRING = /[(<]/y;
const REFERENCE = /(\d{1,10})[\s\0]{1,8}\d{1,5}[\s\0]{1,8}R(?![^\s\0()<>[\]{}/%])/y;
/** Matches references between square brackets. */
const REFERENCES = /\[(?:[\s\0]*\d{1,10}[\s\0]{1,8}\d{1,5}[\s\0]{1,8}R)*[\s\0]*\]/y;
const ESCAPED_NAME = /\/[^\s\0()<>[\]{}/%#]*#[^\s\0()<>[\]{}/%]*/g;
/** Matches an object that is a list, or that has a comment before it. */
const LIST_OBJECT = /obj[\s\0]*([[%][\s\S]*?)(?:endobj|$)/g;

/**
 * Tells whether a page, or a mask, may draw one of the given images as if it was a text of operators. It is false only
 * if every key `Contents` has a value of the plain form, and neither this value nor a list that it may refer to has one
 * of them.
 * @param images numbers of the images' objects
 * @param parts all parts of the file that hold objects
 */
export function mayDrawAsContent(images: ReadonlySet<number>, parts: readonly ObjectsPart[]): boolean {
  return parts.some(({ bytes, table }) => {
    const text = bytes.toString('latin1');
    if (text.includes('#') && text.match(ESCAPED_NAME)?.some((name) => /^\/(?:Contents|G)$/.test(unescaped(name)))) {
      return true;
    }
    for (const { index, 0: whole, 1: key } of text.matchAll(KEY)) {
      const at = index + whole.length;
      const value = matchAt(REFERENCE, text, at) ?? matchAt(REFERENCES, text, at);
      if (value !== undefined && mayName(images, value)) return true;
      if (value === undefined && key === 'Contents' && matchAt(STRING, text, at) === undefined) return true;
    }
    const lists = table === undefined ? [...text.matchAll(LIST_OBJECT)].map(([, list]) => list!) : listsIn(text, table);
    return lists === undefined || lists.some((list) => list.includes('%') || mayName(images, list));
  });
}

/**
 * Returns the objects of an object stream that are lists or have a comment before them; undefined if the numbers and
 * positions of its objects are not plain.
 */
function listsIn(text: string, { count, first }: NonNullable<ObjectsPart['table']>): string[] | undefined {
  const head = text.slice(0, first);
  const numbers = head.match(/\d+/g) ?? [];
  if (!/^[\d\s\0]*$/.test(head) || numbers.length !== 2 * count) return undefined;
  const offsets = new Set(numbers.filter((_, index) => index % 2 === 1).map(Number));
  const starts = [...offsets].toSorted((a, b) => a - b).map((offset) => first + offset);
  return starts
    .map((start, index) => text.slice(start, starts[index + 1]).replace(/^[\s\0]+/, ''))
    .filter((object) => object.startsWith('[') || object.startsWith('%'));
}

/** Tells whether a reference in a text names one of the given objects, or has a number that is not plain. */
function mayName(objects: ReadonlySet<number>, text: string): boolean {
  for (const [, number] of text.matchAll(/(?<![-+.\d])([-+.\d]+)[\s\0]+[-+.\d]+[\s\0]*R/g)) {
    if (!/^\d+$/.test(number!) || objects.has(Number(number))) return true;
  }
  return false;
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

function unescaped(name: string): string {
  return name.replace(/#([\da-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
