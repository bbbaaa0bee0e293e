import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** Number of rows rendered above and below the visible ones, so that no gap appears during scrolling. */
const SPARE_ROWS = 8;

interface VirtualListProps<Item extends { readonly id: string }> {
  readonly items: readonly Item[];
  /** Height of each row in CSS pixels. */
  readonly rowHeight: number;
  readonly label: string;
  readonly children: (item: Item, index: number) => ComponentChildren;
  /** Called when the rendered rows come near the end of the list, to load more. */
  readonly onNearEnd?: () => void;
}

/**
 * Shows a long list of rows of equal height; only the visible rows and a few around them are in the document. A row
 * keeps its elements, and so the focus, while rows before it come and go.
 */
export function VirtualList<Item extends { readonly id: string }>({
  items,
  rowHeight,
  label,
  children,
  onNearEnd,
}: VirtualListProps<Item>) {
  const ref = useRef<HTMLDivElement>(null);
  // Index of the first row in sight. It is kept instead of the scroll position, so that scrolling within a row draws
  // nothing.
  const [first, setFirst] = useState(0);
  const [height, setHeight] = useState(600);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setHeight(entry!.contentRect.height));
    observer.observe(ref.current!);
    return () => observer.disconnect();
  }, []);
  const from = Math.max(0, first - SPARE_ROWS);
  const to = Math.min(items.length, first + 1 + Math.ceil(height / rowHeight) + SPARE_ROWS);
  useEffect(() => {
    if (to >= items.length - SPARE_ROWS) onNearEnd?.();
  }, [to, items.length]);
  return (
    <div
      ref={ref}
      class="list"
      tabIndex={0}
      role="list"
      aria-label={label}
      onScroll={({ currentTarget }) => setFirst(Math.floor(currentTarget.scrollTop / rowHeight))}
    >
      <div style={{ height: `${items.length * rowHeight}px` }} role="presentation">
        {items.slice(from, to).map((item, at) => (
          <div
            key={item.id}
            class="list-item"
            role="listitem"
            aria-setsize={items.length}
            aria-posinset={from + at + 1}
            style={{ top: `${(from + at) * rowHeight}px`, height: `${rowHeight}px` }}
          >
            {children(item, from + at)}
          </div>
        ))}
      </div>
    </div>
  );
}
