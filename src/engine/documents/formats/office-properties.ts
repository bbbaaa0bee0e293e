import { DocumentError } from '../document-error.ts';
import type { DocumentMetadata } from '../parsed-document.ts';
import { childNamed, textOf } from '../xml.ts';
import type { ZipArchive } from '../zip.ts';
import { instantOf } from './bare-document.ts';
import { readPart } from './office-archive.ts';

const NONE: DocumentMetadata = { title: '', authors: [], language: null, publishedAt: null, modifiedAt: null };

/**
 * Reads the properties of an Office file (title, author, dates) from `docProps/core.xml`. If that part is missing or
 * broken, all properties are empty ('', [] or null), since the document's content is in other parts. A default title of
 * a program is ignored.
 */
export async function readCoreProperties(zip: ZipArchive): Promise<DocumentMetadata> {
  let root;
  try {
    root = await readPart(zip, 'docProps/core.xml');
  } catch (error) {
    if (error instanceof DocumentError) return NONE;
    throw error;
  }
  const value = (name: string) => textOf(childNamed(root, name)).trim();
  const title = value('title');
  return {
    title: MADE_UP.test(title) ? '' : title,
    authors: value('creator')
      .split(';')
      .map((author) => author.trim())
      .filter((author) => author !== ''),
    language: value('language') || null,
    publishedAt: instantOf(value('created')),
    modifiedAt: instantOf(value('modified')),
  };
}

/** Matches titles that programs give to new documents by default, such as `Untitled`. */
const MADE_UP = /^(?:(?:power ?point[ -]|microsoft power ?point -).*|slide \d+|untitled|document\d*|presentation\d*)$/i;
