// classic-level, which has LevelDB for node. The write buffer is small, so that there are
// compactions. `driver.js write sync|default KEPT` prints what it has put, `driver.js read ...`
// what is left.
const { ClassicLevel } = require('classic-level')

const value = (n) => `${n} `.repeat(1000)
const [word, setting, kept] = process.argv.slice(2)

async function main() {
  const db = new ClassicLevel('db', { writeBufferSize: 8 << 10 })
  await db.open()
  if (word === 'write') {
    for (let n = 1; n <= 12; n++) {
      await db.put(String(n).padStart(4, '0'), value(n), { sync: setting === 'sync' })
      console.log(n)
      // What is not synced, the file system writes after seconds: then there is still more.
      if (kept === 'some') await new Promise((done) => setTimeout(done, 500))
    }
  } else {
    for await (const [key, left] of db.iterator()) {
      console.log(left === value(Number(key)) ? Number(key) : `${key} with another value`)
    }
  }
  await db.close()
}

main().catch((error) => {
  console.log(String((error.cause ?? error).message))
  process.exitCode = 1
})
