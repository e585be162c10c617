# `prohibit_overlap` covers one cluster. The lock covers all clusters and runs by hand. A client that restarts the task finds the lock
# busy until the first task is dead.
job "nightly" {
  type = "batch"
  periodic {
    crons            = ["15 3 * * *"]
    prohibit_overlap = true
  }
  group "nightly" {
    task "nightly" {
      driver       = "docker"
      kill_timeout = "30s" # longer than --kill-after: rlock kills a job that ignores the signal, and releases the lock, before Nomad kills rlock
      config {
        image   = "registry.example/nightly:1"
        command = "rlock"
        args    = ["run", "-k", "nightly", "-n", "-E", "0", "--min-hold", "5m", "--kill-after", "20s", "--wait-server", "10m", "--", "/usr/local/bin/nightly"]
      }
      env {
        RLOCK_SERVER = "redis://db1"
      }
    }
  }
}
