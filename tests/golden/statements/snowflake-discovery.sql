SELECT
  TO_CHAR("t7"."item", 'UTF-8') AS "item",
  "t7"."users" AS "score",
  "t7"."total"
FROM (
  SELECT
    *
  FROM (
    SELECT
      "t5"."item",
      SUM(
        IFF(
          "t5"."counts",
          CAST(CAST(FLOOR(
            (
              1024 / SQRT(GREATEST(CAST("t5"."own" AS DOUBLE), 1.0))
            ) + 5.960464477539063e-08
          ) AS BIGINT) AS INT),
          0
        )
      ) AS "users",
      COUNT(*) AS "total"
    FROM (
      SELECT
        "t4"."who",
        "t4"."item",
        "t4"."hash",
        "t4"."place",
        "t4"."touched",
        "t4"."place" <= 3 AS "counts",
        LEAST("t4"."touched", 3) AS "own"
      FROM (
        SELECT
          "t3"."who",
          "t3"."item",
          "t3"."hash",
          COUNT(*) OVER (
            PARTITION BY "t3"."who"
            ORDER BY "t3"."hash" ASC
            RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
          ) AS "place",
          COUNT(*) OVER (
            PARTITION BY "t3"."who"
            ORDER BY NULL ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
          ) AS "touched"
        FROM (
          SELECT
            "t2"."who",
            "t2"."item",
            TO_BINARY(
              SUBSTRING(
                MD5(
                  CONCAT(
                    CONCAT(CONCAT('a key', TO_CHAR("t2"."who", 'UTF-8')), '/'),
                    TO_CHAR("t2"."item", 'UTF-8')
                  )
                ),
                IFF(
                  (
                    0 + 1
                  ) >= 1,
                  0 + 1,
                  0 + 1 + LENGTH(
                    MD5(
                      CONCAT(
                        CONCAT(CONCAT('a key', TO_CHAR("t2"."who", 'UTF-8')), '/'),
                        TO_CHAR("t2"."item", 'UTF-8')
                      )
                    )
                  )
                ),
                12
              ),
              'UTF-8'
            ) AS "hash"
          FROM (
            SELECT DISTINCT
              *
            FROM (
              SELECT
                TO_BINARY("t0"."customer", 'UTF-8') AS "who",
                TO_BINARY("t0"."product", 'UTF-8') AS "item"
              FROM "mart"."sales" AS "t0"
            ) AS "t1"
            WHERE
              "t1"."who" IS NOT NULL AND "t1"."item" IS NOT NULL
          ) AS "t2"
        ) AS "t3"
      ) AS "t4"
    ) AS "t5"
    GROUP BY
      1
  ) AS "t6"
  WHERE
    "t6"."users" > 0
) AS "t7"
