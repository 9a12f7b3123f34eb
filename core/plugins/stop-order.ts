/** Calls `end` for each: those that use another one before it, the rest side by side. The uses form no cycle. */
export async function usersFirst(
  uses: ReadonlyMap<string, readonly string[]>,
  end: (id: string) => Promise<void>
): Promise<void> {
  const ends = new Map<string, Promise<void>>()
  const endAfterUsers = async (id: string): Promise<void> => {
    const users = [...uses].filter(([, used]) => used.includes(id)).map(([user]) => user)
    await Promise.all(users.map(once))
    await end(id)
  }
  const once = (id: string): Promise<void> => {
    const ending = ends.get(id) ?? endAfterUsers(id)
    ends.set(id, ending)
    return ending
  }
  await Promise.all([...uses.keys()].map(once))
}
