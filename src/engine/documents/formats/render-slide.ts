import { childNamed, childrenNamed, descendantsNamed, textOf, type XmlElement } from '../xml.ts';
import { renderTable } from './markdown-table.ts';

/**
 * Renders a slide, given by its root XML element, as Markdown: its title as a heading of level 1, then its shapes in
 * their order. Footers, dates and slide numbers are left out. Returns '' for a slide without text.
 */
export function renderSlide(slide: XmlElement): string {
  const title = titleOfSlide(slide);
  const shapes = shapesOf(slide).filter((shape) => !TITLES.has(roleOf(shape)) && !FURNITURE.has(roleOf(shape)));
  return [title === '' ? '' : `# ${title}`, ...shapes.map(renderShape)].filter((block) => block !== '').join('\n\n');
}

/** Returns the title of a slide on one line; '' for none. */
export function titleOfSlide(slide: XmlElement): string {
  const title = shapesOf(slide).find((shape) => TITLES.has(roleOf(shape)));
  return title === undefined ? '' : textsOf(title).join(' ').replace(/\s+/g, ' ').trim();
}

/** Renders the speaker's notes of a slide, given by their root XML element, after `Notes: `; '' if there are none. */
export function renderNotes(notes: XmlElement): string {
  const texts = shapesOf(notes)
    .filter((shape) => roleOf(shape) === 'body')
    .flatMap(textsOf);
  const text = texts.join('\n\n').trim();
  return text === '' ? '' : `Notes: ${text}`;
}

const TITLES: ReadonlySet<string> = new Set(['title', 'ctrTitle']);
/**
 * Roles of placeholders that are not rendered, since they are the same on every slide or show the slide itself:
 * numbers, footers, dates, headers, images of slides.
 */
const FURNITURE: ReadonlySet<string> = new Set(['sldNum', 'ftr', 'dt', 'hdr', 'sldImg']);

/** Returns the shapes, tables and pictures of a slide in their order, including those in groups. */
function shapesOf(slide: XmlElement): XmlElement[] {
  const tree = childNamed(childNamed(slide, 'cSld'), 'spTree');
  return tree === undefined ? [] : flatten(tree);
}

function flatten(group: XmlElement): XmlElement[] {
  return group.children.flatMap((child) => {
    if (typeof child === 'string') return [];
    if (child.name === 'grpSp') return flatten(child);
    // It holds shapes for newer versions, and others for older versions: one of both is taken.
    if (child.name === 'AlternateContent') return flatten(childNamed(child, 'Choice') ?? child);
    return SHAPES.has(child.name) ? [child] : [];
  });
}

const SHAPES: ReadonlySet<string> = new Set(['sp', 'graphicFrame', 'pic']);

/**
 * Returns the role of a placeholder, such as `title`, `body` or `sldNum`; `obj` if it names none, '' for a shape that
 * is not a placeholder.
 */
function roleOf(shape: XmlElement): string {
  const properties = shape.children.find((child) => typeof child !== 'string' && /^nv/.test(child.name)) as
    XmlElement | undefined;
  const placeholder = childNamed(childNamed(properties, 'nvPr'), 'ph');
  return placeholder === undefined ? '' : (placeholder.attributes.get('type') ?? 'obj');
}

function renderShape(shape: XmlElement): string {
  if (shape.name === 'graphicFrame') return [...descendantsNamed(shape, 'tbl')].map(renderTableOf).join('\n\n');
  if (shape.name === 'pic') return alternativeText(shape);
  const isList = LISTS.has(roleOf(shape));
  const paragraphs = paragraphsOf(shape).map((paragraph) => renderParagraph(paragraph, isList));
  let text = '';
  let last = '';
  for (const paragraph of paragraphs.filter((line) => line !== '')) {
    const isItem = /^ *- /.test(paragraph) && /^ *- /.test(last);
    text += text === '' ? paragraph : `${isItem ? '\n' : '\n\n'}${paragraph}`;
    last = paragraph;
  }
  return text;
}

/** Roles of placeholders whose paragraphs have bullets by default. */
const LISTS: ReadonlySet<string> = new Set(['body', 'obj']);
/** Deepest level of a list in PowerPoint, counted from 0; deeper items are treated as if they had this level. */
const MAX_LEVEL = 8;

function renderParagraph(paragraph: XmlElement, isList: boolean): string {
  const text = textOfParagraph(paragraph);
  if (text === '') return '';
  const properties = childNamed(paragraph, 'pPr');
  const isBulleted = BULLETS.some((name) => childNamed(properties, name) !== undefined);
  const isPlain = childNamed(properties, 'buNone') !== undefined;
  if (isPlain || !(isList || isBulleted)) return text;
  const level = Math.min(MAX_LEVEL, Number(properties?.attributes.get('lvl') ?? 0) || 0);
  return `${'  '.repeat(level)}- ${text}`;
}

const BULLETS = ['buChar', 'buAutoNum', 'buBlip'] as const;

function renderTableOf(table: XmlElement): string {
  const [header = [], ...rows] = childrenNamed(table, 'tr').map((row) =>
    childrenNamed(row, 'tc').map((cell) => textsOf(cell).join(' ')),
  );
  return renderTable(header, rows);
}

/** Returns the description of a picture on one line; '' if it has none, or only a file name. */
function alternativeText(picture: XmlElement): string {
  const description = childNamed(childNamed(picture, 'nvPicPr'), 'cNvPr')?.attributes.get('descr')?.trim() ?? '';
  return /\.\w{2,4}$/.test(description) ? '' : description.replace(/\s+/g, ' ');
}

function textsOf(shape: XmlElement): string[] {
  return paragraphsOf(shape)
    .map(textOfParagraph)
    .filter((text) => text !== '');
}

function paragraphsOf(shape: XmlElement): XmlElement[] {
  const body = childNamed(shape, 'txBody');
  return body === undefined ? [] : childrenNamed(body, 'p');
}

/** Joins the texts of a paragraph's runs and fields; a line break within it becomes a blank. */
function textOfParagraph(paragraph: XmlElement): string {
  return paragraph.children
    .map((child) => {
      if (typeof child === 'string' || child.name === 'pPr') return '';
      return child.name === 'br' ? ' ' : [...descendantsNamed(child, 't')].map(textOf).join('');
    })
    .join('')
    .trim();
}
