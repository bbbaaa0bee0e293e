/** A name that memories mention, such as a person or a library, with the number of memories. */
export interface EntitySummary {
  /** Name in folded form: lower case, without accents. */
  readonly name: string;
  /** Name as it is written by the first memory that still mentions it. */
  readonly label: string;
  /** Type of the named thing, one of the entity mode's; `other` if no memory tells it. */
  readonly type: string;
  /** Number of memories that mention the name and that a query could find. */
  readonly mentions: number;
}

/** A name with its relations to other names and the memories that mention it. */
export interface EntityDetails extends EntitySummary {
  /** Relations to other names, most often stated first; at most 100. */
  readonly relations: readonly {
    /** Type of the relation, one of the entity mode's, such as `uses`. */
    readonly type: string;
    /** `out` if this name is the relation's source, else `in`. */
    readonly direction: 'out' | 'in';
    /** The other name in folded form, and as it is written. */
    readonly name: string;
    readonly label: string;
    /** Number of memories that state the relation. */
    readonly memories: number;
  }[];
  /** Ids of the memories that mention the name, latest first; at most 100. */
  readonly memoryIds: readonly string[];
}
