import { DocumentError } from '../document-error.ts';
import type { ParsedDocument } from '../../ports.ts';
import { childNamed, textOf } from '../xml.ts';
import type { ZipArchive } from '../zip.ts';
import { instantOf } from './bare-document.ts';
import { readPart } from './office-archive.ts';

export type CoreProperties = Pick<ParsedDocument, 'title' | 'authors' | 'language' | 'publishedAt' | 'modifiedAt'>;

const NONE: CoreProperties = { title: '', authors: [], language: null, publishedAt: null, modifiedAt: null };

/** What `docProps/core.xml` says about a file of Office. A part that is missing or broken says nothing: the document is elsewhere. */
export async function readCoreProperties(zip: ZipArchive): Promise<CoreProperties> {
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

/** Titles that programs give. */
const MADE_UP = /^(?:(?:power ?point[ -]|microsoft power ?point -).*|slide \d+|untitled|document\d*|presentation\d*)$/i;
