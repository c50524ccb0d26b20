/** How busy a run was, from its beginning on: a bar for each span of time. */
export function Spark({ counts }: { counts: number[] }) {
  const most = Math.max(1, ...counts);
  return (
    <svg className="spark" viewBox="0 0 96 18" aria-hidden="true">
      {counts.map((count, index) => {
        const high = count ? Math.max(2, Math.round((count / most) * 18)) : 1;
        return <rect key={index} x={index * 4} y={18 - high} width="3" height={high} opacity={count ? 1 : 0.5} />;
      })}
    </svg>
  );
}
