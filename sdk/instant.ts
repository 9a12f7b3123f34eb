const shape = /^(\d{4})-(\d\d)-(\d\d)[Tt ]([01]\d|2[0-3]):\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)$/

/**
 * The time that a text of a query names, in RFC 3339; undefined for what is none, as the 30th of February, which a `Date` takes
 * for the 2nd of March. Seconds may be left out, and a plus sign that was not escaped, which arrives as a space, counts as one.
 */
export function instantIn(text: string): Date | undefined {
  const sent = text.replace(/ (\d\d:\d\d)$/, '+$1')
  const [, year, month, day] = shape.exec(sent) ?? []
  const time = new Date(sent)
  if (day === undefined || Number.isNaN(time.getTime())) return undefined
  const daysOfMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  return Number(day) <= daysOfMonth ? time : undefined
}
