import type { ComponentChildren } from 'preact';

interface TableProps {
  readonly label: string;
  /** Headers of the columns. A leading `>` is removed and aligns the header to the right. */
  readonly columns: readonly string[];
  readonly children: ComponentChildren;
}

/** Shows a table that scrolls sideways if it is wider than the page. */
export function Table({ label, columns, children }: TableProps) {
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} class={column.startsWith('>') ? 'right' : ''}>
                {column.replace(/^>/, '')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody class="number">{children}</tbody>
      </table>
    </div>
  );
}
