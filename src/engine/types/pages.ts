/** What a caller of a list asks for. */
/** Which part of a list is wanted. */
export interface Page {
  /** Most items returned, from 0. */
  readonly limit: number;
  /** Items skipped at the start of the list; 0 for the first page. */
  readonly offset: number;
}

/** Which revisions of a memory are wanted. */
export interface RevisionPage {
  /** Most revisions returned, from 1; all of them by default. */
  readonly limit?: number | undefined;
  /** Only revisions that replaced a lower version than this; all by default. */
  readonly before?: number | undefined;
}
