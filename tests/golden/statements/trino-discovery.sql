SELECT
  FROM_UTF8("t7"."item") AS "item",
  "t7"."users" AS "score",
  "t7"."total"
FROM (
  SELECT
    *
  FROM (
    SELECT
      "t5"."item",
      SUM(
        IF(
          "t5"."counts",
          CAST(CAST(FLOOR(
            (
              CAST(1024 AS DOUBLE) / SQRT(GREATEST(CAST("t5"."own" AS DOUBLE), CAST(1.0 AS DOUBLE)))
            ) + CAST(5.960464477539063e-08 AS DOUBLE)
          ) AS BIGINT) AS INTEGER),
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
          COUNT(*) OVER (PARTITION BY "t3"."who" ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS "touched"
        FROM (
          SELECT
            "t2"."who",
            "t2"."item",
            TO_UTF8(
              SUBSTR(
                LOWER(
                  TO_HEX(
                    MD5(
                      TO_UTF8(
                        CONCAT(CONCAT(CONCAT('a key', FROM_UTF8("t2"."who")), '/'), FROM_UTF8("t2"."item"))
                      )
                    )
                  )
                ),
                IF(
                  (
                    0 + 1
                  ) >= 1,
                  0 + 1,
                  0 + 1 + LENGTH(
                    LOWER(
                      TO_HEX(
                        MD5(
                          TO_UTF8(
                            CONCAT(CONCAT(CONCAT('a key', FROM_UTF8("t2"."who")), '/'), FROM_UTF8("t2"."item"))
                          )
                        )
                      )
                    )
                  )
                ),
                12
              )
            ) AS "hash"
          FROM (
            SELECT DISTINCT
              *
            FROM (
              SELECT
                TO_UTF8("t0"."customer") AS "who",
                TO_UTF8("t0"."product") AS "item"
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
