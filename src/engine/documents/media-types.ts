import { DOCUMENT_FORMATS, type DocumentFormat } from '../types.ts';

/** The media types and file extensions by which a request or a file name says that a document has a certain format. */
export interface FormatNames {
  /** Media types of a format in lower case, without parameters; the usual one first. */
  readonly mediaTypes: readonly string[];
  /** File extensions of a format in lower case, without the dot; the usual one first. */
  readonly extensions: readonly string[];
}

/** The names that callers use for each format that can be read. No name belongs to two formats. */
export const FORMAT_NAMES = {
  pdf: { mediaTypes: ['application/pdf', 'application/x-pdf'], extensions: ['pdf'] },
  docx: {
    mediaTypes: [
      'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
      'application/vnd.ms-word.document.macroenabled.12',
    ],
    extensions: ['docx', 'docm'],
  },
  pptx: {
    mediaTypes: [
      'application/vnd.openxmlformats-officedocument.presentationml.presentation',
      'application/vnd.openxmlformats-officedocument.presentationml.slideshow',
      'application/vnd.ms-powerpoint.presentation.macroenabled.12',
    ],
    extensions: ['pptx', 'pptm', 'ppsx'],
  },
  xlsx: {
    mediaTypes: [
      'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
      'application/vnd.ms-excel.sheet.macroenabled.12',
    ],
    extensions: ['xlsx', 'xlsm'],
  },
  epub: { mediaTypes: ['application/epub+zip'], extensions: ['epub'] },
  html: { mediaTypes: ['text/html', 'application/xhtml+xml'], extensions: ['html', 'htm', 'xhtml'] },
  markdown: {
    mediaTypes: ['text/markdown', 'text/x-markdown'],
    extensions: ['md', 'markdown', 'mdx', 'mdown', 'mkd'],
  },
  text: { mediaTypes: ['text/plain'], extensions: ['txt', 'text', 'log', 'rst', 'adoc', 'org', 'srt', 'vtt'] },
  csv: {
    mediaTypes: ['text/csv', 'application/csv', 'text/tab-separated-values'],
    extensions: ['csv', 'tsv', 'tab'],
  },
  json: { mediaTypes: ['application/json', 'text/json'], extensions: ['json', 'geojson', 'ipynb'] },
  ndjson: {
    mediaTypes: ['application/x-ndjson', 'application/ndjson', 'application/jsonl', 'application/x-jsonlines'],
    extensions: ['ndjson', 'jsonl'],
  },
  email: { mediaTypes: ['message/rfc822'], extensions: ['eml'] },
  code: {
    mediaTypes: [
      'text/x-python',
      'text/javascript',
      'application/javascript',
      'application/x-javascript',
      'application/typescript',
      'text/css',
      'text/xml',
      'application/xml',
      'application/yaml',
      'application/x-yaml',
      'application/toml',
      'application/sql',
      'application/x-sh',
      'application/x-httpd-php',
      'application/x-tex',
      'application/x-latex',
    ],
    extensions: `
      py pyi js mjs cjs jsx ts mts cts tsx java kt kts scala groovy gradle c h cc cpp cxx hh hpp hxx m mm cs fs vb go rs
      rb php pl pm lua r jl dart swift zig nim ex exs erl hrl hs ml mli clj cljs lisp el scm vue svelte astro css scss
      less sass sql sh bash zsh fish ps1 bat cmd xml xsd xsl yaml yml toml ini cfg conf properties env tf hcl proto
      graphql gql tex bib cmake mk dockerfile makefile asm s f90 f95 pas sol wat diff patch`
      .trim()
      .split(/\s+/),
  },
} as const satisfies Record<DocumentFormat, FormatNames>;

/** Returns the format of a media type, given in lower case without parameters; undefined if `FORMAT_NAMES` lacks it. */
export function formatOfMediaType(mediaType: string): DocumentFormat | undefined {
  return BY_MEDIA_TYPE.get(mediaType);
}

/**
 * Returns the format of a file extension, given in lower case without the dot; undefined if `FORMAT_NAMES` lacks it.
 */
export function formatOfExtension(extension: string): DocumentFormat | undefined {
  return BY_EXTENSION.get(extension);
}

const BY_MEDIA_TYPE = new Map<string, DocumentFormat>();
const BY_EXTENSION = new Map<string, DocumentFormat>();
for (const format of DOCUMENT_FORMATS) {
  const names: FormatNames = FORMAT_NAMES[format];
  for (const mediaType of names.mediaTypes) BY_MEDIA_TYPE.set(mediaType, format);
  for (const extension of names.extensions) BY_EXTENSION.set(extension, format);
}
