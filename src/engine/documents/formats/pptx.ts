import type { DocumentWarning } from '../../types.ts';
import { DocumentError } from '../document-error.ts';
import { type FormatParser, PARSE_LIMITS } from '../parsed-document.ts';
import type { PageStart } from '../../ports.ts';
import { childNamed, descendantsNamed } from '../xml.ts';
import type { ZipArchive } from '../zip.ts';
import { bareDocument, tooMuchText } from './bare-document.ts';
import {
  damaged,
  findMainPart,
  openOfficeArchive,
  readPart,
  readRelationships,
  relationshipId,
} from './office-archive.ts';
import { readCoreProperties } from './office-properties.ts';
import { renderNotes, renderSlide, titleOfSlide } from './render-slide.ts';

/**
 * Reads a presentation: each slide is a page below its title, in the order of the show, with its lists, tables and
 * notes. Hidden slides, and slides that cannot be read, are left out with a warning.
 * @throws DocumentError `corrupt_document` if every slide is damaged, `document_too_large` for too many slides or too
 *    much text; other errors of `openOfficeArchive`
 */
export const readPptx: FormatParser = async (bytes, { onPage }) => {
  const zip = await openOfficeArchive(bytes);
  const slides = await listSlides(zip);
  const parts: string[] = [];
  const pages: PageStart[] = [];
  const warnings: DocumentWarning[] = [];
  let length = 0;
  let title = '';
  for (const [index, part] of slides.entries()) {
    const slide = await readSlide(zip, part, index + 1);
    if ('code' in slide) {
      warnings.push(slide);
    } else {
      pages.push({ page: index + 1, start: length });
      parts.push(slide.text);
      length += slide.text.length;
      title ||= slide.title;
    }
    if (length > PARSE_LIMITS.textCharacters) throw tooMuchText();
    onPage?.(index + 1, slides.length);
  }
  if (slides.length > 0 && warnings.filter(({ code }) => code === 'page_unreadable').length === slides.length) {
    throw damaged();
  }
  const properties = await readCoreProperties(zip);
  return bareDocument(parts.join(''), { ...properties, title: properties.title || title, pages, warnings });
};

async function listSlides(zip: ZipArchive): Promise<string[]> {
  const main = await findMainPart(zip);
  const presentation = await readPart(zip, main);
  const list = childNamed(presentation, 'sldIdLst');
  const targets = new Map((await readRelationships(zip, main)).map(({ id, target }) => [id, target]));
  const slides = [...(list === undefined ? [] : descendantsNamed(list, 'sldId'))].map(({ attributes }) =>
    targets.get(relationshipId(attributes)),
  );
  if (slides.length > PARSE_LIMITS.pages) {
    throw new DocumentError('document_too_large', `The presentation has more than ${PARSE_LIMITS.pages} slides.`);
  }
  return slides.map((slide) => slide ?? '');
}

/**
 * Reads the slide in the part of the archive at the path `part`. Its text ends with a blank line, unless it is empty.
 * For a hidden or damaged slide, a warning is returned instead.
 * @param page number of the slide, from 1
 */
async function readSlide(
  zip: ZipArchive,
  part: string,
  page: number,
): Promise<{ readonly text: string; readonly title: string } | DocumentWarning> {
  try {
    const slide = await readPart(zip, part);
    if (slide === undefined) throw damaged();
    const isHidden = /^(?:0|false)$/.test(slide.attributes.get('show') ?? '');
    if (isHidden) return { code: 'hidden_text_dropped', message: 'A hidden slide was left out.', page };
    const notes = (await readRelationships(zip, part)).find(({ type }) => type === 'notesSlide');
    const notesPart = notes && (await readPart(zip, notes.target));
    const text = [renderSlide(slide), notesPart === undefined ? '' : renderNotes(notesPart)];
    return { text: text.map((piece) => (piece === '' ? '' : `${piece}\n\n`)).join(''), title: titleOfSlide(slide) };
  } catch (error) {
    if (!(error instanceof DocumentError) || error.code !== 'corrupt_document') throw error;
    return { code: 'page_unreadable', message: 'A slide is damaged.', page };
  }
}
